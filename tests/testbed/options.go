package testbed

import (
	"cmp"
	"io"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

// Options configure a control plane. The zero value means a complete one with one node, fast enough for tests.
type Options struct {
	// Dir holds the data, credentials and logs. It is created if it does not exist, and kept when the control plane stops. Empty
	// means a temporary folder that Stop removes.
	Dir string
	// Log receives the progress of building and starting, a line at a time. Nil means none.
	Log io.Writer

	// ControllerQPS is the rate of requests per second that each controller may make. 0 means 200 (upstream: 20).
	ControllerQPS int
	// ControllerBurst is the burst of requests that each controller may make. 0 means 400 (upstream: 30).
	ControllerBurst int

	// WithoutControllers leaves out the controller manager: nothing rolls, and namespaces get no service account.
	WithoutControllers bool
	// WithoutNode leaves out the node: pods stay pending.
	WithoutNode bool

	// APIServerArgs are further arguments of the API server. They take precedence over those of the test bed.
	APIServerArgs []string
}

func (o Options) withDefaults() Options {
	o.ControllerQPS = cmp.Or(o.ControllerQPS, 200)
	o.ControllerBurst = cmp.Or(o.ControllerBurst, 400)
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// servers returns the names of the binaries that the options need.
func (o Options) servers() []string {
	names := []string{build.Etcd, build.APIServer}
	if !o.WithoutControllers {
		names = append(names, build.ControllerManager)
	}
	if !o.WithoutNode {
		names = append(names, build.Node)
	}
	return names
}
