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
		if named, known := Named(reason.String(), reason.Sentence()+": deployment/api"); !known || named != reason {
			t.Errorf("%s, %s: got %d, %v, want %d", reason, reason.Sentence(), named, known, reason)
		}
	}
	if named, known := Named("on-hold", "words of an earlier release"); !known || named != OnHold {
		t.Errorf("another message: got %d, %v, want the first reason of the name", named, known)
	}
	for _, name := range []string{"", "no-such-reason"} {
		if named, known := Named(name, OnHold.Sentence()); known || named != None {
			t.Errorf("%q: got %s, %v; want no reason", name, named, known)
		}
	}
}

func TestReasonsOfOneNameAreToldToPeopleOrNot(t *testing.T) {
	for _, reason := range Reasons() {
		if loud := verdicts[reason].audience == people; Loud(reason.String()) != loud {
			t.Errorf("%s, %s: it has a Kubernetes Event: %v, and another reason of the name: %v", reason, reason.Sentence(), loud, !loud)
		}
	}
}

func TestEveryReasonIsToldByANameAndASentenceOfItsOwn(t *testing.T) {
	sentences := make(map[string]Reason)
	for reason := Unknown; reason <= WorkloadGone; reason++ {
		if reason.String() == "" || reason.Sentence() == "" {
			t.Errorf("reason %d has no name or no sentence", reason)
		}
		if other, taken := sentences[reason.Sentence()]; taken {
			t.Errorf("reasons %d and %d have the same sentence: %s", other, reason, reason.Sentence())
		}
		sentences[reason.Sentence()] = reason
	}
	if len(sentences) != len(verdicts) {
		t.Errorf("verdicts: got %d, want one for each of %d reasons", len(verdicts), len(sentences))
	}
}
