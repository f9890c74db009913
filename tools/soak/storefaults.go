package main

import (
	"context"
	"os"
	"time"

	"github.com/keyturn/keyturn/tests/testbed"
)

// read reads HISTORY before it is discarded. If that fails, outcomes published since the last reading do not count as untold.
func (c *chaos) read(ctx context.Context, f kind) {
	if err := c.history.collect(ctx); err != nil {
		c.say("%-15s %v; what was published since %s is not known", f, err, c.history.read.Format(time.TimeOnly))
	}
}

// empty purges the streams.
func (c *chaos) empty(ctx context.Context) (string, error) {
	c.say("%-15s purging CHANGES and HISTORY", storeEmpty)
	c.read(ctx, storeEmpty)
	err := c.history.purge(ctx)
	c.history.forget()
	if err != nil {
		// Without a response, the purge may or may not have happened, and both cases are worth testing.
		return "purged the streams, but: " + err.Error(), ctx.Err()
	}
	return "purged the streams", nil
}

// rollBack copies the store of an actuator, lets the actuator run, and then restores the copy.
func (c *chaos) rollBack(ctx context.Context, f fault) (string, error) {
	k, store := c.keyturn.actuators[0], c.keyturn.stores[0]
	backup := store + ".backup"
	c.say("%-15s copying the store, to put the copy back %.1fs later", f.kind, f.hold.Seconds())
	k.kill()
	if err := os.RemoveAll(backup); err != nil {
		return "", err
	}
	if err := os.CopyFS(backup, os.DirFS(store)); err != nil {
		return "", err
	}
	if err := k.start(); err != nil {
		return "", err
	}
	if err := k.ready(ctx); err != nil {
		c.say("%-15s %v", f.kind, err)
	}
	if err := testbed.Sleep(ctx, f.hold); err != nil {
		return "", err
	}
	c.read(ctx, f.kind)
	k.kill()
	if err := os.RemoveAll(store); err != nil {
		return "", err
	}
	if err := os.Rename(backup, store); err != nil {
		return "", err
	}
	c.history.forget()
	return "rolled the store back", k.start()
}

// remove deletes the store of an actuator, as when its volume is lost.
func (c *chaos) remove(ctx context.Context, f fault) (string, error) {
	n := f.pick % len(c.keyturn.actuators)
	k := c.keyturn.actuators[n]
	c.say("%-15s killing %s and deleting its store", f.kind, k.name)
	alone := len(c.keyturn.actuators) == 1
	if alone {
		c.read(ctx, f.kind)
	}
	k.kill()
	if err := os.RemoveAll(c.keyturn.stores[n]); err != nil {
		return "", err
	}
	err := testbed.Sleep(ctx, f.hold)
	if alone {
		// Do this only now: the API server may apply a patch that was sent before the kill, and nobody is there to report it.
		c.history.forget()
	}
	if err != nil {
		return "", err
	}
	return "deleted the store of " + k.name, k.start()
}
