package openbao

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/tests/testkit"
)

func none(string) string { return "" }

func TestAConfigurationIsRead(t *testing.T) {
	const content = `
stores:
- name: main
  address: HTTPS://Bao.Example.com:8200/
  aliases: ["http://bao.bao.svc:8200", "https://bao.example.com:8200"]
  namespace: /team-a/
  tls: {caCertFile: ca.pem, serverName: bao}
  auth:
    kubernetes: {role: watcher}
  poll: {interval: 30s, mounts: [secret/, team-b/secret], databaseMounts: [database], ldapMounts: [ldap], referenced: true}
- name: other
  address: https://other/base/
  lag: 1m30s
  omitAuthors: true
  auth: {appRole: {roleIdFile: role, secretIdFile: secret, mount: /machines/}}
audit: {tokenFile: token, tlsCertFile: tls.crt, tlsKeyFile: tls.key}
`
	got, err := parseConfig([]byte(content), func(string) string { return "not for several stores" })
	testkit.Must(t, err)
	want := fileConfig{Audit: auditConfig{TokenFile: "token", TLSCertFile: "tls.crt", TLSKeyFile: "tls.key"}, Stores: []storeConfig{
		{
			Name: "main", Address: "HTTPS://Bao.Example.com:8200/", Aliases: []string{"http://bao.bao.svc:8200", "https://bao.example.com:8200"},
			Namespace: "team-a", TLS: tlsConfig{CACertFile: "ca.pem", ServerName: "bao"},
			Auth: authConfig{Kubernetes: &kubernetesAuth{Role: "watcher", Mount: "kubernetes", TokenFile: defaultServiceToken}},
			Poll: pollConfig{
				Interval: "30s", Mounts: []string{"secret", "team-b/secret"}, Referenced: true, DatabaseMounts: []string{"database"}, LDAPMounts: []string{"ldap"},
			},
			servers:  []string{"https://bao.example.com:8200", "http://bao.bao.svc:8200"},
			interval: 30 * time.Second,
		},
		{
			Name: "other", Address: "https://other/base/", Auth: authConfig{AppRole: &appRoleAuth{RoleIDFile: "role", SecretIDFile: "secret", Mount: "machines"}},
			OmitAuthors: true, Lag: "1m30s", servers: []string{"https://other/base"}, interval: time.Minute, lag: 90 * time.Second,
		},
	}}
	wantEqual(t, "configuration", want, got)
}

func TestWhatIsWrongWithAConfigurationIsSaid(t *testing.T) {
	const start = "stores: [{name: main, address: 'https://bao', "
	for _, test := range []struct{ name, content, want string }{
		{name: "no stores", content: "{}", want: "stores: is empty, want at least one"},
		{name: "an unknown field", content: start + "tokn: x}]", want: `tokn: unknown field`},
		{name: "a name twice", content: "stores: [{name: a, address: 'https://a'}, {name: a, address: 'https://b'}]", want: `stores[1].name: "a" appears twice, want a name for each store`},
		{name: "no address", content: "stores: [{name: main}]", want: "stores[0].address: is empty, want the URL of the store"},
		{name: "an address with a password", content: "stores: [{name: main, address: 'https://me:canary@bao'}]", want: "stores[0].address: is not the URL of a store, want https://host:port: more than a host and a path"},
		{name: "a malformed address", content: "stores: [{name: main, address: 'https://canary:x'}]", want: "stores[0].address: is not the URL of a store, want https://host:port: malformed"},
		{name: "two ways to log in", content: start + "auth: {token: canary, tokenFile: b}}]", want: "stores[0].auth: has several methods, want one of token, tokenFile, appRole, kubernetes"},
		{name: "an AppRole without anything", content: start + "auth: {appRole: {}}}]", want: "stores[0].auth.appRole: want one of roleId and roleIdFile\nstores[0].auth.appRole.secretIdFile: is empty, want the path of a file"},
		{name: "an interval that is too short", content: start + "poll: {interval: 1ms}}]", want: `stores[0].poll.interval: "1ms" is not a duration of a second or more, want one such as 30s or 1m`},
		{name: "a lag of parts of a second", content: start + "lag: 1500ms}]", want: `stores[0].lag: "1500ms" is not a number of whole seconds below 5m0s, want one such as 0s or 10s`},
		{name: "a lag that is no time", content: start + "lag: long}]", want: `stores[0].lag: "long" is not a number of whole seconds below 5m0s, want one such as 0s or 10s`},
		{name: "a lag that only a restored store has", content: start + "lag: 5m}]", want: `stores[0].lag: "5m" is not a number of whole seconds below 5m0s, want one such as 0s or 10s`},
		{name: "a mount that leads elsewhere", content: start + "auth: {token: a}, poll: {mounts: [../sys]}}]", want: `stores[0].poll.mounts[0]: "../sys" is not the path of a mount, want one such as secret or team-a/secret`},
		{name: "a certificate without its key", content: start + "auth: {token: a}}]\naudit: {tlsCertFile: canary}", want: "audit: one of tlsCertFile and tlsKeyFile is empty, want both or neither"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseConfig([]byte(test.content), none)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v\nwant: %s", err, test.want)
			}
		})
	}
}

func TestTheEnvironmentFillsWhatOneStoreLeavesOut(t *testing.T) {
	environment := map[string]string{
		"BAO_ADDR": "https://bao", "VAULT_ADDR": "https://vault", "VAULT_TOKEN": "t", "BAO_NAMESPACE": "team", "VAULT_CACERT": "ca.pem",
	}
	getenv := func(name string) string { return environment[name] }
	for _, test := range []struct {
		name, content                     string
		address, token, namespace, cacert string
	}{
		{name: "all is left out", content: "stores: [{name: main}]", address: "https://bao", token: "t", namespace: "team", cacert: "ca.pem"},
		{
			name:    "nothing is left out",
			content: "stores: [{name: main, address: 'https://mine', namespace: mine, auth: {token: mine}, tls: {caCertFile: mine}}]",
			address: "https://mine", token: "mine", namespace: "mine", cacert: "mine",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseConfig([]byte(test.content), getenv)
			testkit.Must(t, err)
			if s := got.Stores[0]; s.Address != test.address || s.Auth.Token != test.token || s.Namespace != test.namespace || s.TLS.CACertFile != test.cacert {
				t.Errorf("%+v", s)
			}
		})
	}
	// A token must not be sent to another store.
	_, err := parseConfig([]byte("stores: [{name: a, address: 'https://a'}, {name: b, address: 'https://b'}]"), getenv)
	if err == nil || strings.Count(err.Error(), ".auth: is empty") != 2 {
		t.Errorf("%v, want neither to have credentials", err)
	}
}

func TestWhatIsWrongWithTheOptionsIsSaid(t *testing.T) {
	path := func(name, content string) string { return write(t, name, content) }
	config := path("config", askOnly)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{name: "nothing"},
		{name: "a file with problems", args: []string{"--openbao-config=" + path("bad", "stores: [{}]")}, want: ": stores[0].name: "},
		{name: "a receiver without a token", args: []string{"--openbao-config=" + config, "--openbao-audit-listen=:1"}, want: "--openbao-config: " + config + ": audit.tokenFile: is empty, want the path of a file with the token that the audit device sends; create one with: openssl rand -hex 32"},
		{name: "a receiver with a token that is too short", args: []string{"--openbao-config=" + path("audit", askOnly+"\naudit: {tokenFile: "+path("short", "abc")+"}"), "--openbao-audit-listen=:1"}, want: "token 1 is too short, want 16 characters or more"},
		{
			name: "references without a source", want: "stores[0]: poll.referenced: no source of references here, want poll.mounts",
			args: []string{"--openbao-config=" + path("referenced", "stores: [{name: a, address: 'https://a', auth: {token: a}, poll: {referenced: true}}]")},
		},
		{
			name: "a certificate authority that is none", want: "stores[0]: tls.caCertFile: ",
			args: []string{"--openbao-config=" + path("ca", "stores: [{name: a, address: 'https://a', auth: {token: a}, tls: {caCertFile: "+config+"}}]")},
		},
	}
	for _, name := range []string{"BAO_ADDR", "BAO_TOKEN", "VAULT_ADDR", "VAULT_TOKEN"} {
		t.Setenv(name, "")
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			options := newRig(t, askOnly, nil).options
			options.ConfigFile = ""
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			options.AddFlags(flags)
			testkit.Must(t, flags.Parse(test.args))
			feed, err := New(options)
			if test.want == "" {
				if err != nil || feed.Ready() != nil {
					t.Errorf("%v, want a feed that is ready", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\nwant: %s", err, test.want)
			}
		})
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte(askOnly))
	f.Add([]byte("stores: [{name: a, address: 'https://a', auth: {appRole: {roleId: a, secretIdFile: b}}, poll: {interval: 5s, mounts: [a/b]}}]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		config, err := parseConfig(content, none)
		if err != nil {
			return
		}
		for _, s := range config.Stores {
			if len(s.servers) == 0 || s.interval < time.Second || s.Name == "" {
				t.Errorf("%+v", s)
			}
			for _, server := range s.servers {
				if again, err := storeAddress(server); err != nil || again != server {
					t.Errorf("%q becomes %q, %v", server, again, err)
				}
			}
		}
	})
}
