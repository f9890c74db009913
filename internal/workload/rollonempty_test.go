package workload

import (
	"strings"
	"testing"
)

func TestRollOnThatCannotBeReadIsAList(t *testing.T) {
	for _, text := range []string{"", " ", ",\n,", "everything"} {
		optIn, errs := parseOptIn(rollOn(text), rollOn("auto"), Reading{All: true})
		if len(errs) != 1 {
			t.Errorf("%q: errors %v, want one", text, errs)
		}
		if !optIn.Empty() {
			t.Errorf("%q: the template or roll-all counted", text)
		}
	}
}

func TestRollOnSaysThatItIsEmpty(t *testing.T) {
	_, errs := parseOptIn(rollOn(""), nil, Reading{})
	if got := lines(errs); len(got) != 1 || !strings.HasPrefix(got[0], "keyturn.dev/roll-on: is empty: allowed are none, or any of auto, ") {
		t.Errorf("errors %q", got)
	}
}
