package openbao

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

var observed = Observation{Path: events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "secret", Path: "db"}, State: Live}

func TestOutlet_ASinkWithoutRoomIsOfferedItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offers []time.Time
		out := newOutlet(func(Observation) bool {
			offers = append(offers, time.Now())
			return len(offers) == 12
		}, newStatus(slog.New(slog.DiscardHandler), time.Now), nil)
		began := time.Now()
		out.emit(t.Context(), observed)
		if took := time.Since(began); len(offers) != 12 || took < 3*time.Second || took > 7*time.Second {
			t.Errorf("offered %d times within %v", len(offers), took)
		}
	})
}

func TestOutlet_OffersOnceAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	offers := 0
	out := newOutlet(func(Observation) bool { offers++; return false }, newStatus(slog.New(slog.DiscardHandler), time.Now), nil)
	out.emit(ctx, observed)
	if offers != 1 {
		t.Errorf("offered %d times, want once", offers)
	}
}

func TestOutlet_APathThatEventsCannotNameIsRecordedAndNotOffered(t *testing.T) {
	log := &testkit.Log{}
	status := newStatus(log.Logger(), time.Now)
	out := newOutlet(func(o Observation) bool { t.Errorf("offered %+v", o); return true }, status, nil)
	out.emit(t.Context(), Observation{})
	if !strings.Contains(log.String(), "paths that events cannot name") || status.unpolled() == nil {
		t.Errorf("unpolled: %v; want the log to tell of the path:\n%s", status.unpolled(), log)
	}
}
