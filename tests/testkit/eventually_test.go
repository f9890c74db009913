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
