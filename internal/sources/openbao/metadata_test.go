package openbao

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keyturn/keyturn/internal/events"
)

func TestATimeThatNoClockShowsIsNone(t *testing.T) {
	for text, want := range map[string]bool{
		`"2026-11-20T12:00:00.5+01:00"`: true, `"1970-01-01T00:00:00Z"`: true, `"2199-12-31T23:59:59Z"`: true,
		`"1969-12-31T23:59:59Z"`: false, `"1970-01-01T00:00:00+00:01"`: false, `"1600-01-01T00:00:00Z"`: false, `"0001-01-01T00:00:00Z"`: false,
		`"0000-01-01T00:00:00+23:59"`: false, `"2200-01-01T00:00:00Z"`: false, `"9999-12-31T23:59:59-23:59"`: false,
		`"hmac-sha256:0"`: false, `7`: false, `null`: false,
	} {
		var got instant
		if err := got.UnmarshalJSON([]byte(text)); err != nil || time.Time(got).IsZero() == want {
			t.Errorf("%s: %v, %v", text, time.Time(got), err)
		}
	}
}

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
				for i := range maxLooks { // Audit lines take no room from rotations.
					r.feed.pipelines[0].intake.looks.put(look{entry: entry{path: strconv.Itoa(i)}, due: time.Now().Add(time.Hour)})
				}
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
	for _, test := range []struct {
		name   string
		answer func(began time.Time) (int, string)
		reads  int
	}{
		{name: "one that is late is left to the polls soon", reads: 1 + 1 + rotationTries, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began, `,"rotation_period":60`)
		}},
		{name: "one with a schedule is left to them", reads: 1, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began, `,"rotation_schedule":"* * * * *"`)
		}},
		{name: "one whose rotation is long after the next poll is left to them", reads: 1, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began, `,"rotation_period":3600`)
		}},
		{name: "one with a period that is longer than any time is too", reads: 1, answer: func(began time.Time) (int, string) {
			return http.StatusOK, roleAnswer(began, `,"rotation_period":9223372036854775807`)
		}},
	} {
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

func TestARotationThatIsExpectedIsNotReadAtTheEnd(t *testing.T) {
	store, reads := roleStore(func() (int, string) { return http.StatusOK, roleAnswer(time.Now(), `,"rotation_period":30`) })
	inBubble(t, pollRoles, store, nil, func(*testing.T, *rig) { after(time.Second) })
	if got := reads(); got != 1 {
		t.Errorf("the role was read %d times, want once", got)
	}
}

// A store with a different clock reports its rotations by that clock.
func TestRotationsAreExpectedByTheClockOfTheStore(t *testing.T) {
	began := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	r := &metadataReader{client: &client{now: func() time.Time { return began }}, rotations: newLooks(), horizon: 2 * time.Hour}
	r.client.ahead.Store(int64(10 * time.Minute))
	r.expectRotation(events.RootNamespace, "database/rotate-role/shop", staticRole{LastRotation: instant(began.Add(10 * time.Minute)), Period: 3600})
	if early := r.rotations.take(began.Add(time.Hour)); len(early) > 0 {
		t.Errorf("%+v is read too early", early)
	}
	if due := r.rotations.take(began.Add(time.Hour + rotationDelay*5/4)); len(due) != 1 {
		t.Errorf("%+v are read a little more than an hour later, want the role", due)
	}
}
