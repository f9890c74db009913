package main

import "testing"

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
