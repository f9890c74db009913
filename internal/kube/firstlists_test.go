package kube

import (
	"errors"
	"testing"
)

func TestAProgramIsReadyOnceEachResourceWasListed(t *testing.T) {
	l := NewFirstLists()
	l.Expect("secrets in shop")
	l.Expect("configmaps in shop")
	want := func(problem string) {
		t.Helper()
		done := false
		select {
		case <-l.Done():
			done = true
		default:
		}
		got := ""
		if err := l.Ready(); err != nil {
			got = err.Error()
		}
		if got != problem || done != (problem == "") {
			t.Errorf("got %q, done: %t, want %q", got, done, problem)
		}
	}
	l.Listed("configmaps in shop")
	want("still listing secrets in shop for the first time")
	l.Listed("configmaps in shop")
	l.Deny("configmaps in shop", errors.New("it was listed before"))
	l.Deny("secrets in shop", errors.New("secrets in shop: no permission"))
	want("secrets in shop: no permission")
	l.Listed("secrets in shop")
	want("")
	l.Listed("secrets in shop")
	l.Deny("secrets in shop", errors.New("the permission has ended"))
	want("")
}
