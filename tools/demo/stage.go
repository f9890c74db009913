package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
)

const (
	// cluster is the name of the cluster in events.
	cluster = "demo"
	// rbac is the manifest of the programs' permissions.
	rbac = "deploy/base/rbac.yaml"
	// atOnce limits the rollouts in progress. It is low, so that the demo can kill the actuator between two of them.
	atOnce = 5
	// stopGrace is how long a program may take to end by itself.
	stopGrace = 15 * time.Second
)

// stage is the control plane with the shop, both programs, and the demo's own view of them.
type stage struct {
	plane             *testbed.ControlPlane
	client            kubernetes.Interface
	programs          *programs.Programs
	watcher, actuator *programs.Program
	workloads         *observer
	stream            *stream
	// chain is what feeds the Secrets. Nil in the demos without a store.
	chain *chain
	// jaeger stores the traces. Nil in the demos without tracing.
	jaeger *testbed.Jaeger
	// dir holds the files of all of them.
	dir string

	// seen and published are the state after the previous step: any difference is an effect of the current one.
	seen      map[string]sight
	published map[string]uint64

	// stops undo the setup, the last one first.
	stops []func() error
}

// build starts a control plane with an empty namespace.
func (s *stage) build(ctx context.Context, out *report) error {
	if _, err := os.Stat(rbac); err != nil {
		return fmt.Errorf("run the demo from the root of the repository: %w", err)
	}
	var err error
	if s.dir, err = os.MkdirTemp("", "keyturn-demo-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	s.stops = append(s.stops, func() error { return os.RemoveAll(s.dir) })
	out.did("starting a control plane; the first run builds its servers, which takes some minutes")
	if s.plane, err = testbed.Start(ctx, testbed.Options{Dir: filepath.Join(s.dir, "control-plane"), Log: out}); err != nil {
		return err
	}
	s.onStop(s.plane.Stop)
	if s.client, err = kubernetes.NewForConfig(s.plane.Config()); err != nil {
		return err
	}
	return s.makeNamespace(ctx)
}

// run builds the programs, starts them, and waits until the stream has all sources of the namespace and the further ones.
func (s *stage) run(ctx context.Context, out *report, options programs.Options, further ...string) (err error) {
	options.Cluster, options.Dir, options.RBAC = cluster, s.dir, rbac
	out.did("building both programs")
	if s.programs, err = programs.New(ctx, s.plane, options); err != nil {
		return err
	}
	s.onStop(s.stopPrograms)
	if err := s.startActuator(ctx); err != nil {
		return err
	}
	out.did("the actuator is ready, with its embedded NATS")
	if err := s.startWatcher(ctx); err != nil {
		return err
	}
	out.did("the watcher is ready")
	if s.stream, err = openStream(ctx, s.programs.NATSURL()); err != nil {
		return err
	}
	s.onStop(s.stream.close)
	if s.published, err = s.firstEvents(ctx, further); err != nil {
		return err
	}
	out.did("the watcher has published every source as observed, which rolls nothing")
	return nil
}

func (s *stage) onStop(stop func()) {
	s.stops = append(s.stops, func() error {
		stop()
		return nil
	})
}

// close stops everything, waits for it, and removes the files.
func (s *stage) close() (err error) {
	for _, stop := range slices.Backward(s.stops) {
		err = errors.Join(err, stop())
	}
	return err
}

func (s *stage) stopPrograms() {
	for _, program := range []*programs.Program{s.watcher, s.actuator} {
		if program != nil {
			// Its exit status does not matter any more.
			_ = program.Stop(stopGrace)
		}
	}
}

func (s *stage) startActuator(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if s.actuator, err = s.programs.StartActuator(); err != nil {
		return err
	}
	return s.actuator.Ready(ctx)
}

func (s *stage) startWatcher(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if s.watcher, err = s.programs.StartWatcher(); err != nil {
		return err
	}
	return s.watcher.Ready(ctx)
}

// firstEvents waits until the stream has all Secrets and ConfigMaps of the namespace and the further sources, and the actuator has
// processed them.
func (s *stage) firstEvents(ctx context.Context, further []string) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	secrets, err := s.client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	configMaps, err := s.client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	sources := further
	for _, secret := range secrets.Items {
		sources = append(sources, "secret/"+secret.Name)
	}
	for _, configMap := range configMaps.Items {
		sources = append(sources, "configmap/"+configMap.Name)
	}
	return s.stream.done(ctx, map[string]uint64{}, sources)
}

// set writes one key of a source, given as "secret/db".
func (s *stage) set(ctx context.Context, source, key, value string) error {
	kind, name, _ := strings.Cut(source, "/")
	patch := func(field string) []byte {
		// A map of strings always encodes.
		body, _ := json.Marshal(map[string]any{field: map[string]string{key: value}})
		return body
	}
	var err error
	if kind == "secret" {
		_, err = s.client.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, patch("stringData"), metav1.PatchOptions{})
	} else {
		_, err = s.client.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch("data"), metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", source, err)
	}
	return nil
}
