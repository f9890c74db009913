package program

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/actuate"
	"github.com/keyturn/keyturn/internal/bus/embedded"
	"github.com/keyturn/keyturn/internal/sources"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAFlagOfBothProgramsSetsBoth(t *testing.T) {
	s := NewSingle("test")
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.AddFlags(flags)
	if err := flags.Parse([]string{
		"--cluster=west", "--kubeconfig=/config", "--namespaces=a,b", "--ignore-namespaces=c",
		"--reloader=on,ignore-annotation=example.com/no,webhook-url=https://example.com",
	}); err != nil {
		t.Fatal(err)
	}
	s.share()
	actuator, watcher := &s.Actuator.Actuate, &s.Watcher.Sources
	if diff := cmp.Diff([]any{
		actuator.Cluster, s.Actuator.Process.Kube.Kubeconfig, actuator.Namespaces, actuator.IgnoreNamespaces, actuator.Reloader,
	}, []any{
		watcher.Cluster, s.Watcher.Process.Kube.Kubeconfig, watcher.Namespaces, watcher.IgnoreNamespaces, watcher.Reloader,
	}); diff != "" || watcher.Cluster != "west" || len(watcher.Namespaces) != 2 || len(watcher.IgnoreNamespaces) != 1 || len(watcher.Reloader.Annotations) != 1 {
		t.Errorf("options (-actuator +watcher):\n%s\nwant those of the flags: %+v", diff, watcher)
	}
	if got := s.Actuator.Call.URL; got != "https://example.com" {
		t.Errorf("webhook: got %q, want that of the flag", got)
	}
	// Another flag that both have must be shared, too.
	var both []string
	ofActuator, ofWatcher := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	a, w := actuate.DefaultOptions(), sources.DefaultOptions()
	a.AddFlags(ofActuator)
	w.AddFlags(ofWatcher)
	ofActuator.VisitAll(func(flag *pflag.Flag) {
		if ofWatcher.Lookup(flag.Name) != nil {
			both = append(both, flag.Name)
		}
	})
	if diff := cmp.Diff([]string{"ignore-namespaces", "reloader"}, both); diff != "" {
		t.Errorf("flags of both (-shared +got):\n%s", diff)
	}
}

func TestKeysBesideTheStreamsAreMadeOnceAndTakeTheStreamsWithThem(t *testing.T) {
	s := NewSingle("test")
	dir := t.TempDir()
	s.Actuator.Embedded.StoreDir, s.Watcher.Sources.KeyFile = dir, filepath.Join(dir, keyName)
	message := filepath.Join(dir, "jetstream", "message")
	put := func() {
		t.Helper()
		testkit.Must(t, os.MkdirAll(filepath.Dir(message), 0o700))
		testkit.Must(t, os.WriteFile(message, nil, 0o600))
	}
	const said = "streams of a lost fingerprint key removed"
	take := func() (key, reader string, streams bool) {
		t.Helper()
		var log testkit.Log
		testkit.Must(t, s.takeFiles(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), true))
		_, err := os.Stat(message)
		if removed := err != nil; strings.Contains(log.String(), said) != removed {
			t.Errorf("removed: %t, and the log is %s", removed, &log)
		}
		return read(t, s.Watcher.Sources.KeyFile), s.Actuator.Embedded.Reader, err == nil
	}
	put()
	key, reader, streams := take()
	if streams {
		t.Error("streams of a key that is lost are kept")
	}
	put()
	if again, same, streams := take(); again != key || same != reader || !streams {
		t.Errorf("the next time: the same key %t, the same reader %t, the streams are kept: %t", again == key, same == reader, streams)
	}
}

// Its role may be that of an earlier release. The other keys stay those of the installation.
func TestOnePodThatMayNotReadTheKeyOfTheStreamsStoresThemAsBefore(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "secrets", func(k8stesting.Action) (bool, apiruntime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "keyturn-nats-storage", nil)
	})
	var log testkit.Log
	secrets := client.CoreV1().Secrets("keyturn-system")
	options := embedded.KeyOptions{Secrets: secrets, Updates: secrets, Random: rand.Reader, Logger: log.Logger()}
	key, err := storageKeyOf(t.Context(), log.Logger(), options)
	if key != "" || err != nil || !strings.Contains(log.String(), "the streams are not encrypted") {
		t.Errorf("got a key of %d characters, %v, want none and a warning in\n%s", len(key), err, &log)
	}
}

func TestKeysThatAreRefusedForAMomentAreAskedForAgain(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "keyturn-fingerprint-key", nil)
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "keyturn-system")
	slow := errors.New("timed out")
	for _, tt := range []struct {
		name string
		errs []error // of the first attempts; the next one has the keys
		want error
		asks int
	}{
		{"they are there", nil, nil, 1},
		{"an API server that starts", []error{refused, refused}, nil, 3},
		{"no permission", slices.Repeat([]error{refused}, 100), refused, keysRefusals},
		{"no namespace", []error{absent}, absent, 1},
		{"an API server that does not answer", slices.Repeat([]error{slow}, 20), nil, 21},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asks := 0
				keys, err := askForKeys(t.Context(), slog.New(slog.DiscardHandler), func(context.Context) (embedded.Keys, error) {
					if asks++; asks <= len(tt.errs) {
						return embedded.Keys{Made: asks == 1}, tt.errs[asks-1]
					}
					return embedded.Keys{Reader: "reader"}, nil
				})
				if !errors.Is(err, tt.want) || asks != tt.asks || (err == nil) != (keys.Reader == "reader") {
					t.Errorf("got %v after %d attempts, want %v after %d", err, asks, tt.want, tt.asks)
				}
				if want := len(tt.errs) > 0; keys.Made != want {
					t.Errorf("made: got %t, want %t, as the first attempt said", keys.Made, want)
				}
			})
		})
	}
}

func TestAProblemOfBothProgramsIsReportedOnce(t *testing.T) {
	s := NewSingle("test")
	s.Process.Cluster = "West"
	s.Actuator.Actuate.Namespaces, s.Actuator.Actuate.IgnoreNamespaces = []string{"a"}, []string{"b"}
	err := s.Run(t.Context(), &testkit.Log{}, Build{})
	if err == nil {
		t.Fatal("got no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "--cluster: ") || !strings.Contains(lines[1], "--ignore-namespaces") {
		t.Errorf("got %q, want a line about the name and one about the namespaces", lines)
	}
}
