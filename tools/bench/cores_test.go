package main

import (
	"fmt"
	"testing"
)

func TestServersAndProgramsHaveCoresOfTheirOwnWhereThereAreFour(t *testing.T) {
	for n, want := range map[int]string{2: "[] []", 3: "[] []", 4: "[0 1] [2 3]", 9: "[0 1 2 3] [4 5]"} {
		servers, programs := coresApart(n)
		if got := fmt.Sprint(servers, programs); got != want {
			t.Errorf("of %d cores: got %s, want %s", n, got, want)
		}
	}
}
