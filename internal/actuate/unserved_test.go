package actuate

import (
	"testing"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestAKindThatIsNotServedForADayIsNotWaitedFor(t *testing.T) {
	x, now := indexOf(), written
	x.unserve(kindPlace{kind: "widget"}, now)
	key := workload.Key{Kind: "widget", Namespace: "shop", Name: "web"}
	if !x.isUnserved(key, now) {
		t.Fatal("it is not waited for")
	}
	if now = now.Add(unservedFor); x.isUnserved(key, now) {
		t.Error("it is waited for")
	}
}
