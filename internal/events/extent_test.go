package events

import "testing"

func TestExtent(t *testing.T) {
	s := sharedServer(t)
	b, js := s.bus(), s.jetstream()
	extent := func() Extent {
		t.Helper()
		e, err := answer(t, func() (Extent, error) { return b.Extent(t.Context()) })
		must(t, err)
		return e
	}
	want := extent()
	last := mustPublish(t, b, version("db", "1"), 0)
	mustPublish(t, b, version("web", "1"), 0)
	mustPublish(t, b, version("db", "2"), last)
	if want.FirstSeq, want.LastSeq, want.Events = 2, 3, 2; extent() != want {
		t.Errorf("got %+v, want %+v", extent(), want)
	}
	purge(t, js)
	if want.FirstSeq, want.Events = 4, 0; extent() != want {
		t.Errorf("after a purge: got %+v, want %+v", extent(), want)
	}
	must(t, js.DeleteStream(t.Context(), StreamChanges))
	if _, err := answer(t, func() (Extent, error) { return b.Extent(t.Context()) }); err == nil {
		t.Error("a stream that was deleted has an extent")
	}
	must(t, Declare(t.Context(), js, 1))
	if again := extent(); !again.Created.After(want.Created) {
		t.Errorf("the new stream was created at %s, the one before at %s", again.Created, want.Created)
	}
}
