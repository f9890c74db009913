package openbao

import (
	"testing"
	"time"
)

func TestRenewal_IsAfterTwoThirdsOfTheTimeToLiveOrALittleLater(t *testing.T) {
	now := time.Unix(1000, 0)
	tests := []struct {
		name             string
		ttl              time.Duration
		earliest, latest time.Duration
	}{
		{name: "a minute and a half", ttl: 90 * time.Second, earliest: time.Minute, latest: 66 * time.Second},
		{name: "the shortest that a store grants", ttl: time.Second, earliest: minRenewal, latest: minRenewal},
		{name: "a month, which is renewed daily", ttl: 30 * 24 * time.Hour, earliest: maxRenewal, latest: maxRenewal},
		{name: "a token that does not expire, which is only looked at", earliest: idleRenewal, latest: idleRenewal},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for range 100 {
				r := newRenewal(test.ttl, now)
				if next := r.next(now); next < test.earliest || next > test.latest {
					t.Fatalf("renewed after %v, want %v to %v", next, test.earliest, test.latest)
				}
				if r.due(now) || r.due(now.Add(test.latest)) != (test.ttl > 0) {
					t.Fatal("not due in time")
				}
			}
		})
	}
}

func TestRenewal_ATokenNearItsMaximumLifetimeIsExhausted(t *testing.T) {
	r := newRenewal(time.Hour, time.Unix(0, 0))
	r.extend(time.Hour, time.Unix(0, 0))
	if r.exhausted(time.Hour) || r.exhausted(30*time.Minute) || !r.exhausted(29*time.Minute) {
		t.Error("want less than half of the first time to live")
	}
}
