package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// The names of the contenders.
const (
	contenderFloor   = "floor"
	contenderKeyturn = "keyturn"
	// contenderConfined is the floor subject to the actuator's admission policies. It is what Keyturn is compared with.
	contenderConfined = "confined floor"
	// contenderTraced is Keyturn with every span exported.
	contenderTraced = "traced keyturn"
	// contenderMode is Keyturn in Reloader's mode, and contenderCommand is the command reloader.
	contenderMode    = "reloader's mode"
	contenderCommand = "command reloader"
	// contenderOneCore is Keyturn on one core, where the servers have others.
	contenderOneCore = "keyturn on one core"
	// contenderPod is keyturn run: both programs and NATS in one process.
	contenderPod = "one pod"
	// contenderOld is Keyturn of an earlier build.
	contenderOld = "earlier keyturn"
	// contenderLabel, on a Secret, says which contender it belongs to.
	contenderLabel = "bench.example.com/contender"
)

// stopGrace is how long a program may take to end by itself.
const stopGrace = 20 * time.Second

// contender is one of the contenders. It can be started and stopped repeatedly.
type contender interface {
	// name is one of the constants above.
	name() string
	// owner returns whose Secrets it acts on: contenderFloor or contenderKeyturn.
	owner() string
	// users returns the names of its service accounts in the audit log.
	users() []string
	// start starts it, and returns when it is ready.
	start(ctx context.Context) error
	stop()
	// processes returns its running processes.
	processes() []*process.Process
}

// programsDir returns the folder for the files that the contenders write.
func programsDir(cp *testbed.ControlPlane) string { return filepath.Join(cp.Dir(), "programs") }

// newContenders returns the two contenders that are always compared, the confined floor and Keyturn, with their permissions on the control plane. It
// starts neither.
func newContenders(ctx context.Context, cp *testbed.ControlPlane) (*floor, *keyturn, error) {
	k, err := newKeyturn(ctx, cp, programsDir(cp))
	if err != nil {
		return nil, nil, err
	}
	f, err := newFloor(ctx, cp)
	if err != nil {
		return nil, nil, err
	}
	return f, k, nil
}

// floorRights are the permissions of the floor. They are checked by the same authorizer as those of the programs.
const floorRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: floor, namespace: ` + programs.SystemNamespace + `}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: floor}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [list, watch]}
- {apiGroups: [apps], resources: [deployments], verbs: [list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: floor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: floor}
subjects: [{kind: ServiceAccount, name: floor, namespace: ` + programs.SystemNamespace + `}]
`

type floor struct {
	called, binary, kubeconfig, dir string
	// confined is the kubeconfig of the actuator's account, with which the floor patches. If it is empty, the floor uses its own
	// account, which no policy confines.
	confined string
	// limit is how many rollouts may be in progress. Zero means no limit.
	limit   int
	process *process.Process
}

// newFloor returns the floor that patches with the account of the actuator, under its policies.
func newFloor(ctx context.Context, cp *testbed.ControlPlane) (*floor, error) {
	if err := cp.ApplyYAML(ctx, strings.NewReader(floorRights)); err != nil {
		return nil, err
	}
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, programs.SystemNamespace, "floor")
	if err != nil {
		return nil, err
	}
	confined, err := cp.ServiceAccountKubeconfig(ctx, programs.SystemNamespace, "keyturn-actuator")
	if err != nil {
		return nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return &floor{called: contenderConfined, binary: binary, kubeconfig: kubeconfig, confined: confined, dir: programsDir(cp)}, nil
}

// bare returns the same floor under no policy.
func (f *floor) bare() *floor {
	bare := *f
	bare.called, bare.confined = contenderFloor, ""
	return &bare
}

func (f *floor) name() string { return f.called }

func (f *floor) owner() string { return contenderFloor }

func (f *floor) users() []string {
	users := []string{testbed.ServiceAccountUser(programs.SystemNamespace, "floor")}
	if f.confined != "" {
		users = append(users, testbed.ServiceAccountUser(programs.SystemNamespace, "keyturn-actuator"))
	}
	return users
}

func (f *floor) processes() []*process.Process { return []*process.Process{f.process} }

func (f *floor) start(ctx context.Context) error {
	var err error
	f.process, err = process.Start(process.Options{
		Path: f.binary, Args: []string{floorCommand, "-kubeconfig", f.kubeconfig, "-confined", f.confined, "-limit", strconv.Itoa(f.limit)},
		Name: contenderFloor, LogFile: filepath.Join(f.dir, "floor.log"),
	})
	if err != nil {
		return err
	}
	_, err = f.process.WaitLog(ctx, floorReady)
	return err
}

func (f *floor) stop() {
	if f.process != nil {
		// The floor has no state, so it does not matter how it ends.
		_ = f.process.Stop(stopGrace)
	}
}

// The programs as built by "make build", like those that are shipped.
const (
	watcherBinary  = "bin/watcher"
	actuatorBinary = "bin/actuator"
	keyturnBinary  = "bin/keyturn"
)

// keyturn is both programs, with NATS beside the actuator.
type keyturn struct {
	runs
	programs *programs.Programs
	// actuatorArgs are further arguments of the actuator.
	actuatorArgs []string
}

// newKeyturn returns a pair of programs with their own streams and keys in dir.
func newKeyturn(ctx context.Context, cp *testbed.ControlPlane, dir string) (*keyturn, error) {
	return installed(ctx, cp, contenderKeyturn, programs.Options{
		Dir: dir, RBAC: "deploy/base/rbac.yaml",
		Beside: true, Binaries: programs.Binaries{Watcher: watcherBinary, Actuator: actuatorBinary, Keyturn: keyturnBinary},
	})
}

// installed returns a pair of programs with the options, and with those that every pair has.
func installed(ctx context.Context, cp *testbed.ControlPlane, called string, options programs.Options) (*keyturn, error) {
	if err := os.MkdirAll(options.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	options.Cluster, options.ReloaderPolicy = "bench", "annotations"
	// The watcher ignores the floor's Secrets, which change while it is not running.
	options.WatcherArgs = []string{"--log-level", "info", "--selector", contenderLabel + "!=" + contenderFloor}
	// The floor does not wait for rollouts, either. The limit of the fan-out comes later in the arguments, and so takes precedence.
	options.ActuatorArgs = []string{"--log-level", "info", "--settle", "0s", "--max-rolls-per-hour", "0", "--max-rollouts", "0"}
	p, err := programs.New(ctx, cp, options)
	return keyturnOf(called, p), err
}

// keyturnOf returns a contender that runs the programs of an installation.
func keyturnOf(called string, p *programs.Programs) *keyturn {
	return &keyturn{runs: runs{called: called, accounts: []string{"keyturn-watcher", "keyturn-actuator"}}, programs: p}
}

// traced is the same installation with every span exported to a collector.
func (k *keyturn) traced(collector string) *keyturn {
	return keyturnOf(contenderTraced, k.programs.With(
		"OTEL_EXPORTER_OTLP_ENDPOINT="+collector, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_TRACES_SAMPLER=always_on",
	))
}

func (k *keyturn) start(ctx context.Context) error {
	if err := k.begin(k.programs.StartNATS()); err != nil {
		return err
	}
	if err := k.begin(k.programs.StartActuator(k.actuatorArgs...)); err != nil {
		return err
	}
	if err := k.begin(k.programs.StartWatcher()); err != nil {
		return err
	}
	return k.ready(ctx)
}
