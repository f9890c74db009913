package openbao

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestALoginThatIsRefusedIsNotRepeatedUntilTheRoleIsLocked(t *testing.T) {
	// Vault locks an AppRole after five refusals, each less than 15 minutes after the previous one.
	const locks, forgets = 5, 15 * time.Minute
	// Within 40 minutes comes the login that would lock it. Three hours take some seconds of processor time.
	during, least := 3*time.Hour, 10
	if testing.Short() {
		during, least = 40*time.Minute, locks
	}
	store := newLogins("auth/machines/login", time.Hour, true)
	login := store.answers["auth/machines/login"]
	var refused []time.Time
	store.do("auth/machines/login", func(*http.Request) (int, string) {
		refused = append(refused, time.Now())
		return http.StatusBadRequest, `{"errors":["invalid role or secret ID"]}`
	})
	file := write(t, "secret-id", "canary-wrong")
	inBubble(t, fmt.Sprintf(appRole, file), store.fakeStore, nil, func(t *testing.T, r *rig) {
		for n := range 100 {
			// Looking at paths logs in too.
			r.feed.pipelines[0].intake.take(t.Context(), writeLine("update", fmt.Sprintf("secret/data/%d", n), 3))
		}
		after(during)
		count := 0
		for i, at := range refused {
			if i > 0 && at.Sub(refused[i-1]) >= forgets {
				count = 0
			}
			if count++; count >= locks {
				t.Fatalf("the role is locked: %v", refused)
			}
		}
		if len(refused) < least {
			t.Errorf("tried %d times in %s", len(refused), during)
		}
		// Other credentials are tried at once.
		store.do("auth/machines/login", login)
		testkit.Must(t, os.WriteFile(file, []byte("canary-secret"), 0o600))
		after(2 * time.Minute)
		if store.given != 1 || r.count(t, "keyturn.openbao.polls", "success") == 0 {
			t.Errorf("logged in %d times:\n%s", store.given, r.log)
		}
	})
}

func TestALoginThatWasNotJudgedIsRepeatedSoon(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		most   int // how often it may be tried in ten minutes
	}{
		{"a store that does not answer", 0, "", 100},
		{"a rate limit", http.StatusTooManyRequests, `{"errors":["request path: rate limit quota exceeded"]}`, 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := newLogins("auth/machines/login", time.Hour, true)
			login := store.answers["auth/machines/login"]
			store.say("auth/machines/login", tt.status, tt.body)
			inBubble(t, fmt.Sprintf(appRole, write(t, "secret-id", "canary-secret")), store.fakeStore, nil, func(t *testing.T, r *rig) {
				after(10 * time.Minute)
				if tries := store.times("auth/machines/login"); tries > tt.most {
					t.Errorf("tried %d times in ten minutes", tries)
				}
				store.do("auth/machines/login", login)
				after(70 * time.Second)
				if r.count(t, "keyturn.openbao.polls", "success") == 0 {
					t.Errorf("not polled:\n%s", r.log)
				}
			})
		})
	}
}
