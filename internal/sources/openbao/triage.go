package openbao

import "context"

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
	// Only the lines of KV v2 have a version.
	c, ok := judge(e, e.mount, kvV2)
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
