package openbao

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

const pollRoles = withToken + "{interval: 20m, databaseMounts: [database]}}]"

// roleStore returns a store with one static role, database/static-roles/shop, and how often that was read.
func roleStore(answer func() (status int, body string)) (store *fakeStore, reads func() int) {
	store = newFakeStore(`{"database/":{"type":"database"}}`)
	store.say("database/static-roles?list", http.StatusOK, `{"data":{"keys":["shop"]}}`)
	store.do("database/static-roles/shop", func(*http.Request) (int, string) { return answer() })
	return store, func() int { return store.times("database/static-roles/shop") }
}

func roleAnswer(last time.Time, more string) string {
	return fmt.Sprintf(`{"data":{"username":"u","last_vault_rotation":%q%s}}`, last.UTC().Format(time.RFC3339Nano), more)
}

func TestAStaticRoleIsReadSoonAfterItsRotation(t *testing.T) {
	// The store rotates a few seconds late, as it looks for roles every five.
	for _, late := range []time.Duration{0, 1500 * time.Millisecond, 5 * time.Second} {
		t.Run(late.String()+" late", func(t *testing.T) {
			const period, rotated = 2 * time.Minute, 8
			var began time.Time
			last := func() time.Time { return began.Add(time.Since(began).Truncate(period + late)) }
			store, reads := roleStore(func() (int, string) {
				if began.IsZero() {
					began = time.Now()
				}
				return http.StatusOK, roleAnswer(last(), `,"rotation_period":120`)
			})
			inBubble(t, pollRoles, store, nil, func(t *testing.T, r *rig) {
				after(rotated*(period+late) + 10*time.Second)
				found := map[time.Duration]time.Duration{} // how long after each rotation it was read
				for len(r.sink) > 0 {
					o := <-r.sink
					if rotation := o.At.Sub(began); found[rotation] == 0 {
						found[rotation] = o.ReadAt.Sub(o.At)
					}
				}
				for i := range rotated {
					rotation := time.Duration(i+1) * (period + late)
					if took, ok := found[rotation]; !ok || took > 4*time.Second {
						t.Errorf("rotation %d was read %v later (%t)", i+1, took, ok)
					}
				}
				if got := reads(); got > 1+rotated*(1+rotationTries) {
					t.Errorf("it was read %d times for %d rotations", got, rotated)
				}
			})
		})
	}
}

func TestAStaticRoleThatIsNotReadMoreOften(t *testing.T) {
	tests := []struct {
		name   string
		answer func(began time.Time) (int, string)
		reads  int
	}{
		{name: "one that is late is left to the polls soon", reads: 1 + 1 + rotationTries, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began, `,"rotation_period":60`)
		}},
		{name: "one that has been late for long is left to them", reads: 1, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began.Add(-time.Hour), `,"rotation_period":60`)
		}},
		{name: "one with a schedule is left to them", reads: 1, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began, `,"rotation_schedule":"* * * * *"`)
		}},
		{name: "one with a period that is none is left to them", reads: 1, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began, `,"rotation_period":"canary"`)
		}},
		{name: "one with a period that is longer than any time is too", reads: 1, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began, `,"rotation_period":9223372036854775807`)
		}},
		{name: "one in a store that is down is left to them at once", reads: 2, answer: func(began time.Time) (int, string) {
			if time.Since(began) > 30*time.Second {
				return 0, ""
			}
			return http.StatusOK, roleAnswer(began, `,"rotation_period":60`)
		}},
		{name: "one that is gone is not read any more", reads: 2, answer: func(began time.Time) (int, string) {
			if time.Since(began) > 30*time.Second {
				return http.StatusNotFound, `{"errors":[]}`
			}
			return http.StatusOK, roleAnswer(began, `,"rotation_period":60`)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var began atomic.Pointer[time.Time]
			store, reads := roleStore(func() (int, string) {
				now := time.Now()
				began.CompareAndSwap(nil, &now)
				return test.answer(*began.Load())
			})
			inBubble(t, pollRoles, store, nil, func(t *testing.T, r *rig) {
				after(17 * time.Minute) // the next poll is after eighteen minutes at the earliest
				if got := reads(); got != test.reads {
					t.Errorf("it was read %d times, want %d", got, test.reads)
				}
			})
		})
	}
}

func TestADeletedStaticRoleIsSeenAtItsRotation(t *testing.T) {
	store, _ := roleStore(func() (int, string) { return http.StatusOK, roleAnswer(time.Now(), `,"rotation_period":60`) })
	inBubble(t, pollRoles, store, nil, func(t *testing.T, r *rig) {
		after(30 * time.Second)
		store.say("database/static-roles/shop", http.StatusNotFound, `{"errors":[]}`)
		after(40 * time.Second)
		if o := r.seen()["database/static-creds/shop"]; o.State != Gone {
			t.Errorf("%+v, want it gone", o)
		}
	})
}

// A store with a different clock reports its rotations by that clock.
func TestRotationsAreExpectedByTheClockOfTheStore(t *testing.T) {
	began := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	now := began
	c := &client{}
	c.ahead.Store(int64(10 * time.Minute))
	r := newRotations(c, func() time.Time { return now })
	path := events.StorePath{Store: "main", Namespace: events.RootNamespace, Mount: "database", Path: "static-creds/shop"}
	r.note(path, staticRole{LastRotation: instant(began.Add(10 * time.Minute)), Period: 3600})
	at, ok := r.next()
	if after := at.Sub(began); !ok || after < time.Hour+rotationDelay || after > time.Hour+rotationDelay*5/4 {
		t.Errorf("it is read after %v (%t), want a little more than an hour", after, ok)
	}
	if due := r.take(); len(due) != 0 {
		t.Errorf("it is read too early: %v", due)
	}
	now = at
	if due := r.take(); len(due) != 1 || due[0] != path {
		t.Errorf("%v are read, want the role", due)
	}
	if due := r.take(); len(due) != 0 {
		t.Errorf("it is read twice: %v", due)
	}
	r.forget(now)
	if len(r.roles) != 0 {
		t.Errorf("a role that is not polled any more is kept: %v", r.roles)
	}
}

func TestRolesThatAreRotatedTogetherAreReadTogether(t *testing.T) {
	const many = 50
	store := newFakeStore(`{"database/":{"type":"database"}}`)
	var keys string
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // as in every bubble
	for i := range many {
		name := fmt.Sprintf("role-%02d", i)
		keys += fmt.Sprintf(",%q", name)
		store.do("database/static-roles/"+name, func(*http.Request) (int, string) {
			return http.StatusOK, roleAnswer(began.Add(time.Since(began).Truncate(10*time.Minute)), `,"rotation_period":600`)
		})
	}
	store.say("database/static-roles?list", http.StatusOK, `{"data":{"keys":[`+keys[1:]+`]}}`)
	inBubble(t, pollRoles, store, nil, func(t *testing.T, r *rig) {
		after(17 * time.Minute)
		rotated := 0
		for _, o := range r.seen() {
			if o.At.Equal(began.Add(10 * time.Minute)) {
				rotated++
			}
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		if requests := len(store.asked); rotated != many || requests > 2*many+10 {
			t.Errorf("%d of %d rotations were seen, in %d requests", rotated, many, requests)
		}
	})
}
