package testkit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwaitRepeatsARequestThatHasNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, requests := time.Now(), 0
		Await(t, "the second request is answered", func(ctx context.Context) bool {
			if requests++; requests == 1 {
				<-ctx.Done()
			}
			return requests == 2
		})
		if took := time.Since(began); took != attempt+longestPause {
			t.Errorf("it is repeated after %s, want %s", took, attempt+longestPause)
		}
	})
}

func TestReceiveSaysWhatItWaitedForInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, r := time.Now(), &recorder{TB: t}
		Receive(r, "an answer", make(chan int), func() string { return "nobody was asked" })
		if want := "timed out after 1m0s, still waiting for: an answer"; r.fatal != want {
			t.Errorf("got %q, want %q", r.fatal, want)
		}
		if took := time.Since(began); took != Patience {
			t.Errorf("it waits for %s, want %s", took, Patience)
		}
	})
}
