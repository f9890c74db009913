package sources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/reloader"
	"github.com/keyturn/keyturn/tests/testkit"
)

// flagged are the fields of Options that are flags or are checked.
func flagged(options, want Options) string {
	return cmp.Diff(want, options, cmpopts.IgnoreFields(
		Options{}, "OpenBao", "Client", "Dynamic", "LookAgain", "CheckStream", "Logger", "Tracer", "Meter", "Now", "Progress"))
}

func TestOptionsValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		want   string // empty where the options are valid
	}{
		{"the defaults, with a cluster and a key file, are valid", func(*Options) {}, ""},
		{
			"at least one kind must be given", func(o *Options) { o.Kinds = nil },
			"--sources: is empty, want any of configmap, secret, externalsecret, certificate, secretproviderclass, or --openbao-config",
		},
		{"but where secret stores are watched", func(o *Options) { o.Kinds, o.OpenBao.ConfigFile = nil, "stores.yaml" }, ""},
		{
			"a kind is given once", func(o *Options) { o.Kinds = []string{"secret", "configmap", "secret"} },
			`--sources: "secret,configmap,secret", want each kind once`,
		},
		{
			"namespaces are given by name or by label", func(o *Options) { o.Namespaces, o.NamespaceSelector = []string{"shop"}, "a=b" },
			`--namespace-selector: "a=b", want none with --namespaces`,
		},
		{
			"all that is wrong is reported, one line each", func(o *Options) { *o = Options{Kinds: []string{"x"}, NamespaceBudget: -1} },
			`--cluster: "", want 1 to 63 lower-case letters, digits or '-', beginning and ending with a letter or digit` + "\n" +
				"--fingerprint-key-file: is empty, want the path of a key file; make one with: openssl rand -base64 32\n" +
				`--sources: "x", want any of configmap, secret, externalsecret, certificate, secretproviderclass` + "\n" +
				"--namespace-budget: -1, want 0 or more",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := DefaultOptions()
			options.Cluster, options.KeyFile = "prod-eu", "/etc/keyturn/keys"
			tt.change(&options)
			testkit.WantError(t, options.Validate(), tt.want)
		})
	}
}

func TestOptionsFlagsSetTheirFields(t *testing.T) {
	options := DefaultOptions()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	options.AddFlags(flags)
	if diff := flagged(options, DefaultOptions()); diff != "" {
		t.Errorf("adding the flags changed the defaults (-want +got):\n%s", diff)
	}
	err := flags.Parse([]string{
		"--fingerprint-key-file=/keys", "--sources=secret", "--selector=a=b", "--namespace-selector=c=d",
		"--reloader=ignore-annotation=a/b", "--ignore-namespaces=e,f", "--namespace-budget=5",
	})
	testkit.Must(t, err)
	want := Options{
		IgnoreNamespaces: []string{"e", "f"}, KeyFile: "/keys", Kinds: []string{"secret"}, Selector: "a=b", NamespaceSelector: "c=d",
		Workers: 8, NamespaceBudget: 5, Reloader: reloader.Settings{Annotations: map[string]string{"ignore-annotation": "a/b"}},
	}
	if diff := flagged(options, want); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}
