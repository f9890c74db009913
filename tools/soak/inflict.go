package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testbed/build"
	"github.com/keyturn/keyturn/tests/testbed/process"
)

// chaos inflicts faults on a control plane and on an installation.
type chaos struct {
	plane   *testbed.ControlPlane
	client  kubernetes.Interface
	keyturn *installation
	history *history
	say     func(format string, args ...any)
}

// inflict inflicts a fault, ends it, and waits until everything is ready again. If something is not ready in time, that is an incident.
// An error means that the soak cannot continue.
func (c *chaos) inflict(ctx context.Context, f fault) (inflicted, []incident, error) {
	if err := testbed.Sleep(ctx, f.after); err != nil {
		return inflicted{}, nil, err
	}
	done := inflicted{kind: f.kind, from: time.Now()}
	var err error
	switch targets[f.kind] {
	case "watcher":
		done.what, err = c.disturb(ctx, f, c.keyturn.watchers)
	case "actuator":
		done.what, err = c.disturbActuators(ctx, f)
	case "control plane":
		done.what, err = c.disturbPlane(ctx, f)
	default:
		done.what, err = c.disturbLink(ctx, f)
	}
	if err != nil {
		return done, nil, fmt.Errorf("%s: %w", f.kind, err)
	}
	var found []incident
	if err := c.ready(ctx); err != nil && ctx.Err() == nil {
		found = append(found, incident{ill: broken, workload: string(f.kind), at: time.Now(), detail: err.Error()})
	}
	done.to = time.Now()
	c.say("%-15s %s; everything is ready again %.1fs after it began", f.kind, done.what, done.to.Sub(done.from).Seconds())
	return done, found, ctx.Err()
}

// ready waits until the API server and all programs are ready.
func (c *chaos) ready(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, backSoon, true, func(ctx context.Context) (bool, error) {
		last = c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the API server is not ready: %w", last)
	}
	return c.keyturn.ready(ctx)
}

// disturb kills or suspends one of the keepers' programs.
func (c *chaos) disturb(ctx context.Context, f fault, keepers []*keeper) (string, error) {
	k := keepers[f.pick%len(keepers)]
	if f.kind == watcherStop || f.kind == actuatorStop {
		return c.suspend(ctx, f, k.name, k.now().Process)
	}
	return c.takeDown(ctx, f, k.name, k.kill, k.start)
}

// takeDown kills something, and starts it again later.
func (c *chaos) takeDown(ctx context.Context, f fault, name string, kill func(), start func() error) (string, error) {
	c.say("%-15s killing %s for %.1fs", f.kind, name, f.hold.Seconds())
	kill()
	if err := testbed.Sleep(ctx, f.hold); err != nil {
		return "", err
	}
	return "killed " + name, start()
}

func (c *chaos) suspend(ctx context.Context, f fault, name string, p *process.Process) (string, error) {
	c.say("%-15s suspending %s for %.1fs", f.kind, name, f.hold.Seconds())
	if err := p.Suspend(); err != nil {
		return "", err
	}
	if err := testbed.Sleep(ctx, f.hold); err != nil {
		return "", err
	}
	return "suspended " + name, p.Resume()
}

// disturbActuators disturbs an actuator or its store. If there are several actuators, one of five kills is of all of them.
func (c *chaos) disturbActuators(ctx context.Context, f fault) (string, error) {
	all := c.keyturn.actuators
	switch {
	case f.kind == storeEmpty:
		return c.empty(ctx)
	case f.kind == storeRollback:
		return c.rollBack(ctx, f)
	case f.kind == storeDelete:
		return c.remove(ctx, f)
	case f.kind == actuatorKill && len(all) > 1 && f.pick%5 == 0:
		return c.takeDown(ctx, f, "all actuators", func() {
			for _, k := range all {
				k.kill()
			}
		}, func() (err error) {
			for _, k := range all {
				err = errors.Join(err, k.start())
			}
			return err
		})
	}
	return c.disturb(ctx, f, all)
}

// disturbPlane kills or suspends a server of the control plane.
func (c *chaos) disturbPlane(ctx context.Context, f fault) (string, error) {
	name, kill, start := build.APIServer, c.plane.KillAPIServer, c.plane.StartAPIServer
	if f.kind == etcdKill || f.kind == etcdStop {
		name, kill, start = build.Etcd, c.plane.KillEtcd, c.plane.StartEtcd
	}
	if f.kind == apiServerStop || f.kind == etcdStop {
		return c.suspend(ctx, f, name, c.plane.Server(name))
	}
	return c.takeDown(ctx, f, name, kill, func() error { return start(ctx) })
}

// disturbLink cuts or silences a link.
func (c *chaos) disturbLink(ctx context.Context, f fault) (string, error) {
	name := []string{watcherNATS, watcherAPI, actuatorAPI}[f.pick%3]
	l := c.keyturn.links[name]
	what, undo := "cut", l.mend
	if f.kind == linkMute {
		what, undo = "silenced", l.unmute
		l.mute()
	} else {
		l.cut()
	}
	defer undo()
	c.say("%-15s %s the link of %s for %.1fs", f.kind, what, name, f.hold.Seconds())
	return what + " the link of " + name, testbed.Sleep(ctx, f.hold)
}
