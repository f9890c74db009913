package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMovedCountsHowOftenASpecWasChanged(t *testing.T) {
	before := map[string]sight{"deployment/still": {writes: 1}, "deployment/once": {writes: 1}, "deployment/twice": {writes: 4}}
	now := map[string]sight{
		"deployment/still": {writes: 1}, "deployment/once": {writes: 2}, "deployment/twice": {writes: 6},
		"deployment/new": {writes: 1},
	}
	want := map[string]int64{"deployment/once": 1, "deployment/twice": 2, "deployment/new": 1}
	if diff := cmp.Diff(want, moved(before, now)); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
}

func TestChangedListsTheSourcesWithLaterEvents(t *testing.T) {
	before := map[string]uint64{"secret/a": 1, "secret/b": 2}
	now := map[string]uint64{"secret/a": 1, "secret/b": 5, "configmap/c": 4}
	if diff := cmp.Diff([]string{"configmap/c", "secret/b"}, changed(before, now)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
}

func TestCheckRollsNamesWhatIsWrong(t *testing.T) {
	st := step{rolls: []string{"deployment/web"}}
	before := map[string]sight{"deployment/web": {writes: 1}, "deployment/other": {writes: 1}}
	for _, test := range []struct {
		name       string
		web, other int64
		want       string
	}{
		{name: "a workload that was to be rolled and was is right", web: 2, other: 1},
		{name: "a workload that was rolled twice is wrong", web: 3, other: 1, want: "deployment/web changed 2 times, want once"},
		{name: "a workload that was not to be rolled is wrong", web: 2, other: 2, want: "deployment/other changed unexpectedly"},
	} {
		t.Run(test.name, func(t *testing.T) {
			now := map[string]sight{"deployment/web": {writes: test.web}, "deployment/other": {writes: test.other}}
			got := ""
			if err := st.checkRolls(before, now); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
