package openbao

import (
	"context"
	"strings"
)

// drain calls process for each entry of the spool, in order. Once ctx is done it processes what is spooled and returns.
func drain(ctx context.Context, spool <-chan entry, process func(context.Context, entry)) {
	for {
		select {
		case e := <-spool:
			process(ctx, e)
		case <-ctx.Done():
			for {
				select {
				case e := <-spool:
					process(ctx, e)
				default:
					return
				}
			}
		}
	}
}

// triage observes the entries that are complete by themselves, and turns the others into hints.
type triage struct {
	hints   chan<- hint
	intake  *intake // counts the hints that are dropped
	origin  origin
	catalog catalog
	outlet  *outlet
}

func (t *triage) process(ctx context.Context, e entry) {
	c, ok := judge(e, e.mount, kvUnknown)
	if ok && !e.isLate() && e.mount != "" && c.identifies(e) && !t.catalog.leaps(c.path, c.version) {
		t.outlet.emit(ctx, t.origin.ofEntry(e, c))
		return
	}
	select {
	case t.hints <- newHint(e):
	default:
		t.intake.miss(ctx, dropped)
	}
}

// maxLearned is the maximum number of mounts that a guesser remembers.
const maxLearned = 1024

// guesser observes the entries of a store that cannot be asked. It belongs to one goroutine.
type guesser struct {
	origin  origin
	outlet  *outlet
	learned map[mountName]bool // the mounts that were seen to be KV v2

	newcomers *newcomers
}

func (g *guesser) process(ctx context.Context, e entry) {
	if e.mount == "" {
		e.mount = guessMount(e)
	}
	name, kv := mountName{e.namespace, e.mount}, kvUnknown
	switch {
	case !inVersioned(e):
		// The line that suggested KV v2 was wrong, or the mount has been replaced.
		delete(g.learned, name)
	case e.version > 0 && len(g.learned) < maxLearned:
		g.learned[name] = true
	}
	if g.learned[name] {
		kv = kvV2
	}
	// Without version numbers, a partial change may only concern old versions.
	c, ok := judge(e, e.mount, kv)
	if ok && c.state != 0 && (!c.partial || len(e.versions) > 0) && g.newcomers.admit(ctx, c.path) {
		g.outlet.emit(ctx, g.origin.ofEntry(e, c))
	}
}

// inVersioned reports whether KV v2 has such a path. It refuses writes to other paths.
func inVersioned(e entry) bool {
	verb, _, _ := strings.Cut(strings.TrimPrefix(e.path, e.mount+"/"), "/")
	switch verb {
	case "data", "metadata", "delete", "undelete", "destroy", "config":
		return true
	}
	return false
}
