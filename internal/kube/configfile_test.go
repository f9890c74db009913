package kube

import (
	"strings"
	"testing"
)

func TestDecodeSaysWhereAndQuotesNoValue(t *testing.T) {
	const secret = "s3cret"
	for _, tt := range []struct{ name, content, want string }{
		{"a field that is not known", "tokne: " + secret, "tokne: unknown field"},
		{"a field twice", "token: " + secret + "\ntoken: b", "line 2: invalid YAML, or a duplicate field"},
		{"what is not YAML", "token: [" + secret, "line 1: invalid YAML, or a duplicate field"},
		{"a value of another type", "count: " + secret, "count: is of type string, want int"},
		{"a second document", "token: a\n--- # more\n\ncount: 1", "line 4: a second YAML document, want one in a file"},
		{"a second document on the line of its marker", "token: a\n--- " + secret, "line 2: a second YAML document, want one in a file"},
		{"a document after an empty one", "---\n---\ntoken: a", "line 3: a second YAML document, want one in a file"},
		{"a document after the end of one", "token: a\n...\ntoken: b", "line 3: a second YAML document, want one in a file"},
		{"a value under a wrong tag", "count: !!int " + secret, "invalid YAML, or an unknown field"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var into struct {
				Token string `json:"token"`
				Count int    `json:"count"`
			}
			err := DecodeStrict([]byte(tt.content), &into)
			if err == nil || err.Error() != tt.want || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestDecodeReadsYAML(t *testing.T) {
	var into struct {
		Token string `json:"token"`
	}
	for _, content := range []string{"# where it is\ntoken: a\n", "# where it is\n---\ntoken: a\n---\n# no more\n", "token: a\n...\n", "%YAML 1.1\n---\ntoken: a\n", "token: |-\n  a\n"} {
		if err := DecodeStrict([]byte(content), &into); err != nil || into.Token != "a" {
			t.Errorf("%q: got %q, %v", content, into.Token, err)
		}
	}
}
