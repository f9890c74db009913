package openbao

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// manySecrets has the store list that many secrets, and answer about each alone, as Vault does.
func (l *logins) manySecrets(count int) {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprintf("app-%d", i))
		l.guard(fmt.Sprintf("secret/metadata/app-%d", i), metadataOf(1, "1999-01-01T00:00:00Z"))
	}
	l.guard("secret/metadata?list", `{"data":{"keys":[`+strings.Join(names, ",")+`]}}`)
	l.do("secret/detailed-metadata?scan", func(r *http.Request) (int, string) {
		l.lock.Lock()
		defer l.lock.Unlock()
		l.valid(r)
		return http.StatusForbidden, forbidden
	})
}

func TestATokenThatIsUsedUpIsReplaced(t *testing.T) {
	for _, test := range []struct {
		name   string
		uses   int
		logins int // in ten minutes, at most
	}{
		{name: "by a part of a poll", uses: 10, logins: 60},
		{name: "by each request", uses: 1, logins: 600},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := newLogins("auth/machines/login", 20*time.Minute, true)
			store.uses = test.uses
			store.manySecrets(41)
			inBubble(t, fmt.Sprintf(appRole, write(t, "secret-id", "canary-secret")), store.fakeStore, nil, func(t *testing.T, r *rig) {
				after(9 * time.Minute)
				store.guard("secret/metadata/app-40", metadataOf(2, "2000-01-01T00:09:00Z"))
				after(70 * time.Second)
				if got := r.seen()["secret/app-40"]; got.Version != 2 {
					t.Errorf("observed %+v, want the version that was written", got)
				}
				if failed := r.count(t, "keyturn.openbao.polls", "failure"); failed != 0 {
					t.Errorf("%d polls have failed", failed)
				}
				if store.given > test.logins {
					t.Errorf("logged in %d times, want %d at most", store.given, test.logins)
				}
				told := fmt.Sprintf(`msg="store tokens are soon used up: set token_num_uses of the role to 0" store=main uses=%d`, test.uses)
				if log := r.log.String(); strings.Count(log, told) != 1 || strings.Count(log, "level=WARN") != 1 {
					t.Errorf("want one warning, %s:\n%s", told, log)
				}
			})
		})
	}
}

func TestPathsThatThePolicyDeniesCauseFewLogins(t *testing.T) {
	store := newLogins("auth/machines/login", 20*time.Minute, true)
	store.uses = 1000
	store.manySecrets(41)
	deny := func(request string) {
		store.do(request, func(r *http.Request) (int, string) {
			store.lock.Lock()
			defer store.lock.Unlock()
			store.valid(r)
			return http.StatusForbidden, forbidden
		})
	}
	deny("auth/token/lookup-self")
	for i := range 20 {
		deny(fmt.Sprintf("secret/metadata/app-%d", i))
	}
	inBubble(t, fmt.Sprintf(appRole, write(t, "secret-id", "canary-secret")), store.fakeStore, nil, func(t *testing.T, r *rig) {
		after(10 * time.Minute)
		if failed := r.count(t, "keyturn.openbao.polls", "failure"); failed != 0 || len(r.seen()) != 21 {
			t.Errorf("%d polls have failed, and %d secrets were observed, want 21", failed, len(r.seen()))
		}
		if store.given > 15 {
			t.Errorf("logged in %d times, want once in a poll at most", store.given)
		}
	})
}

func TestATokenThatLastsIsWorthNoWarning(t *testing.T) {
	store := newLogins("auth/machines/login", 20*time.Minute, true)
	store.uses = 50
	inBubble(t, fmt.Sprintf(appRole, write(t, "secret-id", "canary-secret")), store.fakeStore, nil, func(t *testing.T, r *rig) {
		after(2 * time.Hour)
		if failed := r.count(t, "keyturn.openbao.polls", "failure"); failed != 0 || r.log.String() != "" {
			t.Errorf("%d polls have failed:\n%s", failed, r.log)
		}
		// A renewal would be a use.
		if store.renewed > 0 || store.given < 5 || store.given > 12 {
			t.Errorf("renewed %d times and logged in %d times", store.renewed, store.given)
		}
	})
}

func TestAGivenTokenThatIsUsedUpIsTold(t *testing.T) {
	store := newLogins("", time.Hour, false)
	store.uses = 5
	store.guard("auth/token/lookup-self", `{"data":{"num_uses":4,"renewable":false}}`)
	store.set(0, at(t, "2000-01-01T10:00:00Z"))
	config := "stores: [{name: main, address: 'http://bao', auth: {token: canary-0}, poll: {interval: 1m, mounts: [secret]}}]"
	inBubble(t, config, store.fakeStore, nil, func(t *testing.T, r *rig) {
		after(time.Hour)
		log := r.log.String()
		for _, want := range []string{"uses=4", `msg="store cannot be read" store=main for=secret reason=used-up`} {
			if strings.Count(log, want) != 1 {
				t.Errorf("want %s once", want)
			}
		}
		if strings.Contains(log, "permission denied") || r.count(t, "keyturn.openbao.polls", "failure") == 0 {
			t.Errorf("want the failed polls to be for the token that is used up:\n%s", log)
		}
	})
}
