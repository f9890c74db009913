package tests

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/process"
	"github.com/keyturn/keyturn/tests/testkit"
)

// attempt is what somebody tries who has taken over a program: who has the token of its account or the seed of its NATS user.
type attempt struct {
	name string
	// admitted says why it succeeds. Empty: it must fail.
	admitted string
	// try returns nil if it succeeds, and an error that wraps errRefused if it fails.
	try func(t *testing.T) error
}

// errRefused is wrapped by the error of an attempt that fails as it should.
var errRefused = errors.New("refused")

// tryAll tries each, in their order.
func tryAll(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, tt := range attempts {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.try(t)
			switch {
			case err != nil && !errors.Is(err, errRefused):
				t.Errorf("got %v, want to know whether it succeeds", err)
			case tt.admitted == "" && err == nil:
				t.Error("it succeeds, want that it is refused")
			case tt.admitted != "" && err != nil:
				t.Errorf("got %v, want that it succeeds, as is admitted: %s", err, tt.admitted)
			}
		})
	}
}

// takeover runs the programs with the NATS users and permissions of deploy, all components included. The actuator calls a webhook: then it has a
// durable consumer of changes.
type takeover struct{ *rig }

func newTakeover(t *testing.T) *takeover {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	called := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(called.Close)
	testkit.NewCA(t).Issue(t, dir, time.Now().Add(time.Hour))
	env := append(natsVariables(t, "demo"), "NATS_TLS_CERT="+file("tls.crt"), "NATS_TLS_KEY="+file("tls.key"))
	for _, user := range []string{"watcher", "actuator", "reader", "audit", "projector"} {
		env = append(env, "NATS_"+strings.ToUpper(user)+"_KEY="+testkit.NewNATSUser(t, dir, user))
	}
	k := &takeover{newRig(t, programs.Options{
		Dir: dir, Env: env,
		WatcherArgs: []string{"--nats-creds", file("watcher.nk"), "--nats-ca", file("ca.crt")},
		ActuatorArgs: []string{
			"--nats-creds", file("actuator.nk"), "--nats-ca", file("ca.crt"), "--reloader", "webhook-url=" + called.URL,
		},
	})}
	for name, path := range map[string]string{
		"nats.conf": "components/projector/with-audit/nats.conf", "audit.conf": "components/openbao-audit/nats.conf",
		"projector.conf": "components/projector/nats.conf", "programs.conf": "programs/nats.conf",
	} {
		content, err := os.ReadFile("../deploy/" + path)
		if err == nil {
			err = os.WriteFile(file(name), content, 0o600)
		}
		testkit.Must(t, err)
	}
	k.startActuator()
	k.awaitConsumers(1)
	return k
}

// natsVariables returns the variables that deploy has for the configuration of NATS, as the kubelet fills them in.
func natsVariables(t testing.TB, cluster string) []string {
	t.Helper()
	read := func(path string, into any) {
		t.Helper()
		content, err := os.ReadFile("../deploy/" + path)
		if err == nil {
			err = yaml.Unmarshal(content, into)
		}
		testkit.Must(t, err)
	}
	var set appsv1.StatefulSet
	read("programs/actuator.yaml", &set)
	variables := set.Spec.Template.Spec.Containers[0].Env
	for _, name := range []string{"openbao-audit", "projector"} {
		var component struct{ Patches []struct{ Patch string } }
		read("components/"+name+"/kustomization.yaml", &component)
		for _, one := range component.Patches {
			var operations []struct{ Value json.RawMessage }
			if yaml.Unmarshal([]byte(one.Patch), &operations) != nil {
				continue // It is no list of operations.
			}
			for _, operation := range operations {
				var variable corev1.EnvVar
				if json.Unmarshal(operation.Value, &variable) == nil {
					variables = append(variables, variable)
				}
			}
		}
	}
	var env []string
	for _, variable := range variables {
		if strings.HasPrefix(variable.Name, "NATS_") && variable.Value != "" {
			env = append(env, variable.Name+"="+strings.ReplaceAll(variable.Value, "$(KEYTURN_CLUSTER)", cluster))
		}
	}
	return env
}

// awaitConsumers waits until CHANGES has so many consumers, whatever their names are.
func (k *takeover) awaitConsumers(count int) {
	k.Helper()
	testkit.Await(k.T, "the consumers are there", func(context.Context) bool {
		return k.user("actuator").stream(k.T, "CHANGES").State.Consumers >= count
	})
}

// startProjector starts one, and waits until it has its consumer.
func (k *takeover) startProjector() {
	k.Helper()
	p := newProjectRig(k.T, nil)
	kubeconfig, err := plane.ServiceAccountKubeconfig(k.Context(), p.namespace, projectorAccount)
	testkit.Must(k, err)
	before := k.user("actuator").stream(k.T, "CHANGES").State.Consumers
	process.Run(k.T, process.Options{
		Path: binaries.Keyturn, Name: "projector", Env: []string{"GORACE=atexit_sleep_ms=0"},
		Args: []string{
			"project", "--cluster", k.programs.Cluster(), "--kubeconfig", kubeconfig, "--nats-url", k.programs.NATSURL(),
			"--nats-creds", k.file("projector.nk"), "--nats-ca", k.file("ca.crt"), "--projections-config", p.config,
			"--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
		},
	})
	k.awaitConsumers(before + 1)
}

// file returns the path of a file with a key.
func (k *takeover) file(name string) string {
	return filepath.Join(filepath.Dir(k.programs.KeyFile()), name)
}
