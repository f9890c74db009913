package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestMain(m *testing.M) {
	if replica := os.Getenv(replicaEnv); replica != "" {
		if err := runReplica(replica); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.Main(m)
}

func TestStartRefuses(t *testing.T) {
	dir := t.TempDir()
	config := func(name, text string) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for _, tt := range []struct {
		name string
		opts Options
		want string
	}{
		{"to listen on all addresses without authentication", Options{Listen: "0.0.0.0:4222"}, `listen "0.0.0.0:4222" is not a loopback address`},
		{"a config file that has no authentication", Options{Listen: "0.0.0.0:4222", ConfigFile: config("open", "max_payload: 1MB")}, "is not a loopback address"},
		{"a user for those who have none", Options{Listen: "0.0.0.0:4222", ConfigFile: config("noauth", `
			no_auth_user: a
			authorization { users: [ { user: a, password: b } ] }`)}, "is not a loopback address"},
		{"a cluster of one", Options{Listen: "127.0.0.1:4222", ConfigFile: config("cluster", "cluster { name: c, port: 6222 }")}, "the cluster block has 0 routes, want those to all of 3 or 5 servers"},
		{"an even number of replicas", Options{ConfigFile: config("even", "server_name: a, cluster { name: c, port: 6222, routes: [nats://a, nats://b] }")}, "has 2 routes"},
		{"a cluster that anybody may join", Options{ConfigFile: config("joined", "server_name: a, cluster { name: c, listen: 0.0.0.0:6222, routes: [nats://a, nats://b, nats://c] }")}, "want tls with verify"},
		{"an address of the config file without authentication", Options{ConfigFile: config("everywhere", "listen: 0.0.0.0:4222")}, `listen "0.0.0.0:4222" is not a loopback address`},
		{"a port of the config file without authentication", Options{ConfigFile: config("port", "port: 4222")}, `listen ":4222" is not a loopback address`},
		{"a gateway", Options{ConfigFile: config("gateway", "gateway { name: c, port: 7222 }")}, "has a gateway block"},
		{"a config file that is none", Options{ConfigFile: config("nonsense", "}{")}, "reading " + filepath.Join(dir, "nonsense")},
		{"an address without a port", Options{Listen: "127.0.0.1"}, "want host:port"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.StoreDir = t.TempDir()
			s, err := Start(tt.opts, nil)
			if err == nil {
				s.Shutdown()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, tt.want)
			}
		})
	}
	if _, err := Start(Options{}, nil); err == nil {
		t.Error("it starts without a store directory")
	}
	file := config("file", "")
	if s, err := Start(Options{StoreDir: file}, nil); err == nil {
		s.Shutdown()
		t.Error("it starts on a store directory that is a file")
	}
}

func TestNoErrorHasASeedOfTheConfiguration(t *testing.T) {
	user, err := nkeys.CreateUser()
	testkit.Must(t, err)
	account, err := nkeys.CreateAccount()
	testkit.Must(t, err)
	seed := func(pair nkeys.KeyPair) string {
		seed, err := pair.Seed()
		testkit.Must(t, err)
		return string(seed)
	}
	whole := seed(user)
	for name, key := range map[string]string{
		"the end is missing":       "nkey: " + whole[:len(whole)-1],
		"a letter is wrong":        "nkey: " + whole[:30] + "o" + whole[31:],
		"it is that of an account": "nkey: " + seed(account),
		"it is twice":              whole + whole,
	} {
		path := filepath.Join(t.TempDir(), "nats.conf")
		testkit.Must(t, os.WriteFile(path, []byte("leafnodes { remotes [ { url: \"nats://hub:7422\"\n"+key+"\n} ] }"), 0o600))
		_, err := Options{StoreDir: t.TempDir(), ConfigFile: path}.options()
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s: got %v, want it refused", name, err)
		}
		if part := regexp.MustCompile("[A-Z2-7]{12,}").FindString(err.Error()); part != "" {
			t.Errorf("%s: the error has %d letters of the key", name, len(part))
		}
	}
}

func TestStartTakesAnyAddressWithAuthentication(t *testing.T) {
	for name, text := range map[string]string{
		"users": "authorization { users: [ { user: a, password: b } ] }",
		"nkeys": "accounts { A { jetstream: enabled, users: [ { nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 } ] } }",
	} {
		path := filepath.Join(t.TempDir(), "nats.conf")
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		options, err := Options{Listen: "0.0.0.0:4222", StoreDir: t.TempDir(), ConfigFile: path}.options()
		if err != nil || options.Host != "0.0.0.0" || options.Port != 4222 || options.DontListen {
			t.Errorf("%s: got %+v, %v", name, options, err)
		}
		testkit.Must(t, os.WriteFile(path, []byte(text+"\nlisten: 0.0.0.0:4333"), 0o600))
		options, err = Options{StoreDir: t.TempDir(), ConfigFile: path}.options()
		if err != nil || options.Host != "0.0.0.0" || options.Port != 4333 || options.DontListen {
			t.Errorf("%s, with the address of the file: got %+v, %v", name, options, err)
		}
	}
}

func TestAServerWithoutAnAddressIsReachedByItsProcessAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nats.conf")
	testkit.Must(t, os.WriteFile(path, []byte("max_payload: 1MB"), 0o600))
	for _, file := range []string{"", path} {
		if options, err := (Options{StoreDir: t.TempDir(), ConfigFile: file}).options(); err != nil || !options.DontListen {
			t.Errorf("with the file %q: got %+v, %v", file, options, err)
		}
	}
}

// errIn returns the error of what has another result, too.
func errIn[T any](_ T, err error) error { return err }

// observe returns what reads the metrics of a server, by their names and labels.
func observe(t *testing.T, s *Server) (read func() map[string]int64) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	testkit.Must(t, s.Observe(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("")))
	return func() map[string]int64 { return testkit.Measured(t, reader) }
}

// expiry returns when the certificate for clients or servers ends, according to the metric, zero if that says nothing.
func expiry(t *testing.T, s *Server, peer string) time.Time {
	t.Helper()
	if end, ok := observe(t, s)()["keyturn.nats.certificate.expiry.timestamp{peer="+peer+"}"]; ok {
		return time.Unix(end, 0)
	}
	return time.Time{}
}
