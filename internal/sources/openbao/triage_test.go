package openbao

import (
	"context"
	"strings"
	"testing"
)

func TestDrain_ProcessesWhatIsSpooledAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	spool := make(chan entry, 3)
	for _, path := range []string{"a", "b", "c"} {
		spool <- entry{path: path}
	}
	var got []string
	drain(ctx, spool, func(_ context.Context, e entry) { got = append(got, e.path) })
	if strings.Join(got, "") != "abc" {
		t.Errorf("processed %v", got)
	}
}
