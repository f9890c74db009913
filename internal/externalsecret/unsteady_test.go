package externalsecret

import "testing"

func TestATemplateThatDiffersAtEachSyncIsKnown(t *testing.T) {
	for _, test := range []struct{ name, template, want string }{
		{name: "one of values alone", template: "{data: {url: 'db://{{ .user }}:{{ .password | urlquery }}@db'}}"},
		{name: "a password hash", template: "{data: {auth: '{{ htpasswd .user .password }}'}}", want: "htpasswd"},
		{name: "the end of a pipe", template: "{data: {auth: 'x:{{ .password|bcrypt }}', b: '{{ .b }}'}}", want: "bcrypt"},
		{name: "a block that trims", template: "{data: {a: '{{- if (and .a (randAlphaNum 8)) -}}x{{ end }}'}}", want: "randAlphaNum"},
		{name: "a key, and the time", template: "{data: {a: '{{ now }}', b: '{{ genPrivateKey \"rsa\" }}'}}", want: "genPrivateKey"},
		{name: "a keystore", template: "{data: {ks: '{{ pemToPkcs12 .crt .key }}'}}", want: "pemToPkcs12"},
		{name: "more than one line", template: `{data: {a: "{{ $x :=\n uuidv4 }}{{ $x }}"}}`, want: "uuidv4"},
		{name: "a literal", template: "{templateFrom: [{literal: 'id: {{ uuidv4 }}'}]}", want: "uuidv4"},
		{name: "no data", template: "{metadata: {annotations: {at: '{{ now }}'}}, templateFrom: [{target: Labels, literal: 'at: {{ now }}'}]}"},
		{name: "text outside of braces", template: "{data: {a: 'now {{ .a }} bcrypt'}}"},
		{name: "a field, a variable, a text and a comment", template: "{data: {a: '{{ .now }}{{ $now }}{{ .a.bcrypt }}{{ get . \"now\" }}{{ `now` }}{{/* now */}}'}}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			es := externalSecretOf(t, "{target: {template: "+test.template+"}}")
			if es.Unsteady != test.want || len(es.Problems) > 0 {
				t.Errorf("got %q, want %q; problems: %v", es.Unsteady, test.want, es.Problems)
			}
		})
	}
}
