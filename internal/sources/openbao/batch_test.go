package openbao

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// bodyOf returns lines of that many writes.
func bodyOf(count int) []byte {
	lines := make([][]byte, count)
	for n := range lines {
		lines[n] = writeLine("update", "secret/data/db", n+1)
	}
	return bytes.Join(lines, []byte("\n"))
}

func TestABatchWaitsForRoomOrIsToBeSentAgain(t *testing.T) {
	tests := []struct {
		name  string
		lines int
		room  int
		// drains is how many entries are taken out of the spool, one a second.
		drains int
		full   bool
		taken  int
		polls  int
		waited time.Duration
	}{
		{name: "there is room for all lines", lines: 3, room: 3, taken: 3},
		{name: "there will be in time", lines: 3, room: 1, drains: 2, taken: 3, waited: 2 * time.Second},
		{name: "there is none", lines: 3, room: 1, full: true, taken: 1, waited: roomTimeout},
		{name: "there is none for the first line", lines: 2, full: true, waited: roomTimeout},
		{name: "there is none for the only line, which a device posts while the store waits", lines: 1, polls: 1},
		{name: "there is none for the end of so many lines that their beginning would be forgotten", lines: maxAgain + 1, room: maxAgain, taken: maxAgain, polls: 1, waited: roomTimeout},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newIntake(t, max(test.room, 1))
				if test.room == 0 {
					i.spool <- entry{}
				}
				taken := 0
				go func() {
					for range test.drains {
						<-time.After(time.Second)
						<-i.spool
						taken++
					}
				}()
				began := time.Now()
				b := batch{to: i}
				if err := b.read(t.Context(), bytes.NewReader(bodyOf(test.lines))); err != nil {
					t.Fatal(err)
				}
				waited := time.Since(began).Round(100 * time.Millisecond)
				synctest.Wait()
				for len(i.spool) > 0 {
					if e := <-i.spool; e.path != "" {
						taken++
					}
				}
				if b.full != test.full || taken != test.taken || len(i.polls) != test.polls || waited != test.waited {
					t.Errorf("full %t, %d taken, %d polls, waited for %s; want %t, %d, %d, %s",
						b.full, taken, len(i.polls), waited, test.full, test.taken, test.polls, test.waited)
				}
			})
		})
	}
}

func TestABatchThatIsSentAgainIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIntake(t, 2)
		var versions []int64
		for range 3 {
			b := batch{to: i}
			if err := b.read(t.Context(), bytes.NewReader(bodyOf(5))); err != nil {
				t.Fatal(err)
			}
			for len(i.spool) > 0 {
				versions = append(versions, (<-i.spool).version)
			}
			if full := len(versions) < 5; b.full != full {
				t.Errorf("after %v: full %t, want %t", versions, b.full, full)
			}
		}
		if len(versions) != 5 {
			t.Errorf("got %v, want each version once", versions)
		}
	})
}

// Whether a line becomes a hint is known only behind the spool.
func TestABatchLeavesRoomForTheHintsThatItsLinesMayBecome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newIntake(t, spoolSize)
		i.hints = make(chan hint, maxRoomTakers+5)
		i.hints <- hint{}
		b := batch{to: i}
		if err := b.read(t.Context(), strings.NewReader(string(bodyOf(10)))); err != nil {
			t.Fatal(err)
		}
		if !b.full || len(i.spool) != 4 {
			t.Errorf("full %t, %d spooled; want what there is room for as hints", b.full, len(i.spool))
		}
	})
}

// A line that is complete by itself becomes no hint, so it is dropped only where the spool has no room.
func TestALineThatIsNotSentAgainNeedsNoRoomForHints(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines int
	}{
		{name: "the only one", lines: 1},
		{name: "one after so many that their beginning would be forgotten", lines: maxAgain + 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newIntake(t, spoolSize+1)
				i.hints = make(chan hint, test.lines-1+maxRoomTakers)
				b := batch{to: i}
				if err := b.read(t.Context(), bytes.NewReader(bodyOf(test.lines))); err != nil {
					t.Fatal(err)
				}
				if b.full || len(i.spool) != test.lines || len(i.polls) != 0 {
					t.Errorf("full %t, %d spooled, %d polls; want all %d spooled", b.full, len(i.spool), len(i.polls), test.lines)
				}
			})
		})
	}
}
