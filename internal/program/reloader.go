package program

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/pprof"
	"time"
)

// profileLimit is how long a profile may take. The default of a request is 30 seconds.
const profileLimit = 5 * time.Minute

// Reloader runs the watcher and the actuator in one process, with a NATS server that only they can reach. Its fields are its options.
type Reloader struct {
	// Process contains the options of the process. Of the process options of the two programs, only Kube is used.
	Process  Options
	Watcher  *Watcher
	Actuator *Actuator
	// StateDir contains the streams and, unless the watcher has a key file, the fingerprint key. Empty means a temporary directory.
	StateDir string
	// PprofAddr is the host:port that serves profiles. Empty means none.
	PprofAddr string
	// Notes are logged as warnings at the start.
	Notes []Note
}

// Note is a message to users about an accepted setting.
type Note struct{ Setting, Text string }

// NewReloader returns a Reloader with the defaults.
func NewReloader(version string) *Reloader {
	r := &Reloader{Process: defaultOptions("reloader", version), Watcher: NewWatcher(version), Actuator: NewActuator(version)}
	// The streams belong to this process, so no other process shares the work, unless there are replicas.
	r.Actuator.Actuate.LeaderElect, r.Actuator.Actuate.PrivateStream = false, true
	return r
}

// Run runs both programs until ctx ends, one of them ends, or a step fails. An error about the options has a line for each problem. Log lines
// go to log.
func (r *Reloader) Run(ctx context.Context, log io.Writer, build Build) error {
	state, err := openState(stateDirs(r.StateDir, "keyturn-reloader"), r.Watcher.Sources.KeyFile, rand.Reader)
	if err != nil {
		return err
	}
	r.Watcher.Sources.Cluster, r.Actuator.Actuate.Cluster = r.Process.Cluster, r.Process.Cluster
	r.Actuator.Call.URL = r.Actuator.Actuate.Reloader.WebhookURL
	r.Watcher.Sources.KeyFile, r.Actuator.Embedded.StoreDir = state.keyFile, state.streams
	err = errors.Join(r.Process.validate(), r.Watcher.Sources.Validate(), r.Actuator.Actuate.Validate(), r.Actuator.validateCall())
	if err == nil {
		err = run(ctx, program{
			Name: "reloader", Build: build, Options: r.Process, Log: log,
			OneServer: true, Servers: []server{{Name: "pprof", Addr: r.PprofAddr, Handler: profiles(), WriteTimeout: profileLimit}},
			Parts: together(r.Watcher, r.Actuator, func(ctx context.Context, runtime *runtime) { r.warn(ctx, runtime, state) }),
		})
	}
	return errors.Join(err, state.lock.Close())
}

// warn logs the disadvantages of running in one process, and the notes.
func (r *Reloader) warn(ctx context.Context, runtime *runtime, s state) {
	runtime.Logger.WarnContext(ctx, "watcher and actuator share one process, so one account reads secrets and writes workloads; "+
		"changes made while it is down are found only if its state directory is kept", "state_dir", s.dir, "new", s.made)
	if r.StateDir == "" {
		runtime.Logger.WarnContext(ctx, "the state is in a temporary directory, which is lost with the container or the pod: pending rolls are then "+
			"forgotten, and changes made meanwhile are not found, but unchanged sources roll nothing", "state_dir", s.dir)
	}
	for _, note := range r.Notes {
		runtime.Logger.WarnContext(ctx, "setting has a different effect here", "setting", note.Setting, "effect", note.Text)
	}
}

// profiles returns a handler for the profiles of net/http/pprof, which that package registers only on http.DefaultServeMux. It does not serve
// the command line, which may have the address of a webhook.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
