package actuate

import (
	"testing"
)

func TestAStandbyCollectsNothing(t *testing.T) {
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	web := workloadOf(t, "auto", wholeDB, nil)
	a.index.Written(web)
	if kept, links := a.dirty.take(); len(kept)+len(links) != 0 {
		t.Errorf("before it leads it keeps %v and %v", kept, links)
	}
	l := newLoop(a.surroundings, unwritten(a))
	a.index.Forget(web.Key(), web.ID.UID, "")
	keys, _ := a.dirty.take()
	if _, kept := keys[web.Key()]; !kept {
		t.Error("while it leads it does not keep what has changed")
	}
	l.drain(t.Context())
	a.index.Written(web)
	if kept, links := a.dirty.take(); len(kept)+len(links) != 0 {
		t.Errorf("after it has led it keeps %v and %v", kept, links)
	}
}
