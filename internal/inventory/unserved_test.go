package inventory

import (
	"testing"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestAKindThatWasNeverServedIsWaitedForForADay(t *testing.T) {
	x, now := indexOf(), written
	x.Unserve(Place{Kind: "widget"}, "", now)
	key := workload.Key{Kind: "widget", Namespace: "shop", Name: "web"}
	if !x.IsUnserved(key, now) {
		t.Fatal("it is not waited for")
	}
	if now = now.Add(unservedFor); x.IsUnserved(key, now) {
		t.Error("it is waited for")
	}
}
