package testbed

import (
	"cmp"
	"io"

	"github.com/keyturn/keyturn/tests/testbed/build"
)

// Options configure a control plane. The zero value is a complete one with one node, quick enough for tests.
type Options struct {
	// Dir holds the data, credentials and logs. It is created if it does not exist, and kept when the control plane stops. Empty
	// means a temporary folder that Stop removes.
	Dir string
	// Log receives the progress of building and starting, a line at a time. Nil means none.
	Log io.Writer

	// Nodes is the number of fake nodes, each with room for 100,000 pods. 0 means 1. Nodes are not made WithoutKwok.
	Nodes int
	// PodStages says how pods become ready. Empty means [build.PodsFast].
	PodStages build.PodStages

	// ControllerQPS is the rate of requests per second that each controller may make. 0 means 200 (upstream: 20).
	ControllerQPS int
	// ControllerBurst is the number of requests that a controller may make at once. 0 means 400 (upstream: 30).
	ControllerBurst int
	// DeploymentSyncs is the number of Deployments that are worked on concurrently. 0 means 20 (upstream: 5).
	DeploymentSyncs int

	// WithoutControllers leaves out the controller manager: nothing rolls, and namespaces get no service account.
	WithoutControllers bool
	// WithoutScheduler leaves out the scheduler: pods stay pending.
	WithoutScheduler bool
	// WithoutKwok leaves out kwok and its nodes: pods stay pending.
	WithoutKwok bool

	// APIServerArgs are further arguments of the API server. They take precedence over those of the test bed.
	APIServerArgs []string
}

func (o Options) withDefaults() Options {
	o.Nodes = cmp.Or(o.Nodes, 1)
	o.PodStages = cmp.Or(o.PodStages, build.PodsFast)
	o.ControllerQPS = cmp.Or(o.ControllerQPS, 200)
	o.ControllerBurst = cmp.Or(o.ControllerBurst, 400)
	o.DeploymentSyncs = cmp.Or(o.DeploymentSyncs, 20)
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
	if !o.WithoutScheduler {
		names = append(names, build.Scheduler)
	}
	if !o.WithoutKwok {
		names = append(names, build.Kwok)
	}
	return names
}
