package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testbed/process"
)

// The contenders that split what Keyturn costs the control plane more than the floor.
const (
	// contenderSpun is the floor beside a program that only uses as much of a core as Keyturn does. What it costs more is contention.
	contenderSpun = "floor beside a spinner"
	// contenderWatched is the floor beside a Keyturn that has nothing to do. What it costs more is the watches.
	contenderWatched = "floor beside a watching keyturn"
	// contenderSilent is Keyturn without the right to write Kubernetes Events. What it costs less than Keyturn is these. What it costs more than the
	// floor beside the watches is the policy, where that has more to evaluate, and the size of what is written.
	contenderSilent = "keyturn without events"
)

// splitters returns the contenders of the table.
func (f *fan) splitters() []contender {
	silent := f.keyturn.limited(fanOutLimit)
	silent.called = contenderSilent
	floor := f.floor.limited(fanOutLimit)
	return []contender{
		floor,
		&accompanied{floor: floor, called: contenderSpun, by: &spinner{binary: floor.binary, dir: floor.dir}},
		&accompanied{floor: floor, called: contenderWatched, by: onlooker{f.keyturn.limited(fanOutLimit)}},
		silent, f.keyturn.limited(fanOutLimit),
	}
}

// accompanied is a floor beside something else that runs.
type accompanied struct {
	*floor
	called string
	by     companion
}

// companion is what runs beside a floor.
type companion interface {
	start(ctx context.Context) error
	stop()
	processes() []*process.Process
}

func (a *accompanied) name() string { return a.called }

func (a *accompanied) start(ctx context.Context) error {
	if err := a.by.start(ctx); err != nil {
		return err
	}
	return a.floor.start(ctx)
}

func (a *accompanied) stop() {
	a.floor.stop()
	a.by.stop()
}

// onlooker is a Keyturn that only watches: the Secrets that change are not its own.
type onlooker struct{ *keyturn }

// start returns when it has nothing left to do.
func (o onlooker) start(ctx context.Context) error {
	if err := o.keyturn.start(ctx); err != nil {
		return err
	}
	return calm(ctx, o.processes())
}

const (
	// spinCommand is the command that makes this program the spinner, in a process of its own.
	spinCommand = "spin"
	// spinTime of each spinPeriod is 12 % of a core, what Keyturn uses in the fan-out.
	spinTime   = 1200 * time.Microsecond
	spinPeriod = 10 * time.Millisecond
)

// runSpin uses a part of a core until the context is done.
func runSpin(ctx context.Context) {
	next := time.NewTicker(spinPeriod)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			started := time.Now()
			spinning := func() bool { return time.Since(started) < spinTime }
			for spinning() {
			}
		}
	}
}

type spinner struct {
	binary, dir string
	process     *process.Process
}

func (s *spinner) start(context.Context) error {
	var err error
	s.process, err = process.Start(process.Options{
		Path: s.binary, Args: []string{spinCommand}, Name: "spinner", LogFile: filepath.Join(s.dir, "spinner.log"),
	})
	return err
}

func (s *spinner) processes() []*process.Process { return []*process.Process{s.process} }

func (s *spinner) stop() {
	if s.process != nil {
		// It has no state, so it does not matter how it ends.
		_ = s.process.Stop(stopGrace)
	}
}

// rollByRight is roll, with the right to write Kubernetes Events or without it.
func (f *fan) rollByRight(ctx context.Context, w way, c contender) (err error) {
	if c.name() == contenderSilent {
		if err := f.mayWriteEvents(ctx, false); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.mayWriteEvents(ctx, true)) }()
	}
	return f.roll(ctx, w, c)
}

// mayWriteEvents gives the actuator the right to write Kubernetes Events, or takes it.
func (f *fan) mayWriteEvents(ctx context.Context, may bool) error {
	roles := f.cluster.client.RbacV1().ClusterRoles()
	role, err := roles.Get(ctx, "keyturn-actuator", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the rights of the actuator: %w", err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "events") })
	if may {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}})
	}
	if _, err := roles.Update(ctx, role, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("changing the rights of the actuator: %w", err)
	}
	return nil
}
