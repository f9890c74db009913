package program

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/keyturn/keyturn/internal/project"
)

// Projector is the program that copies values of Secrets into fields of custom resources. Its fields are its options.
type Projector struct {
	Process Options
	Project project.Options
}

// NewProjector returns a projector with the defaults.
func NewProjector(version string) *Projector {
	return &Projector{Process: defaultOptions("projector", version), Project: project.DefaultOptions()}
}

// AddFlags adds the flags of the options.
func (p *Projector) AddFlags(flags *pflag.FlagSet) {
	p.Process.addClusterFlags(flags)
	p.Process.addServingFlags(flags)
	p.Project.AddFlags(flags)
}

// Run runs the projector until ctx ends or a step fails. An error about the options has a line for each problem. Log lines go to log.
func (p *Projector) Run(ctx context.Context, log io.Writer, build Build) error {
	if err := errors.Join(p.Process.validate(), p.Project.Validate()); err != nil {
		return err
	}
	return run(ctx, program{
		Name: "projector", Build: build, Options: p.Process, Log: log,
		// The projector does not check the identity of the cluster, because that takes permission to read a namespace. If another cluster has the
		// same name, its events only cause needless comparisons here.
		Parts: []part{{Role: "projector", Prepare: p.prepare}},
	})
}

func (p *Projector) prepare(r *runtime) (prepared, error) {
	p.Process.Kube.NoWarnings = true
	var err error
	if p.Project.Client, err = p.Process.Kube.Client(); err != nil {
		return prepared{}, err
	}
	if p.Project.Dynamic, err = p.Process.Kube.Dynamic(); err != nil {
		return prepared{}, err
	}
	p.Project.Random, p.Project.Now = rand.Reader, time.Now
	p.Project.Logger, p.Project.Tracer, p.Project.Meter = r.Logger, r.Tracer("project"), r.Meter("project")
	projector, err := project.New(p.Project)
	if err != nil {
		return prepared{}, err
	}
	r.Health.AddReadiness("resources", projector.Ready)
	return prepared{Run: projector.Run}, nil
}
