package plan

import "testing"

func TestEveryHoldHasWhatEndsIt(t *testing.T) {
	for _, reason := range Reasons() {
		_, waits := waitings[reason]
		if holds := reason.Action() == Hold; waits != holds {
			t.Errorf("%s: it has a row in waitings: %v, but its action is %s", reason, waits, reason.Action())
		}
		if waits && reason.Waiting() == NotWaiting {
			t.Errorf("%s: its row in waitings says that it holds nothing", reason)
		}
	}
}

func TestNamedFindsEveryReason(t *testing.T) {
	for _, reason := range Reasons() {
		if named, known := Named(reason.String()); !known || named != reason {
			t.Errorf("%s: got %s, %v", reason, named, known)
		}
	}
	for _, name := range []string{"", "no-such-reason"} {
		if named, known := Named(name); known || named != None {
			t.Errorf("%q: got %s, %v; want no reason", name, named, known)
		}
	}
}
