package main

import (
	"testing"
	"time"
)

func TestEachDemoEndsAsExpected(t *testing.T) {
	// The demos run from the root of the repository.
	t.Chdir("../..")
	for _, test := range []struct {
		name string
		show show
	}{
		{"changes of Secrets and ConfigMaps", changesDemo()},
		{"rotations in a secret store", secretsDemo()},
		{"the trace of a change", traceDemo()},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := play(t.Context(), &report{out: t.Output(), start: time.Now()}, test.show); err != nil {
				t.Error("the output above says what failed")
			}
		})
	}
}
