package openbao

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// logins is a fake store where a login at the path returns tokens with a time to live. A token is valid until it expires or is used up, and a renewal
// extends it. All other requests need a valid token.
type logins struct {
	*fakeStore
	lock      sync.Mutex // for what follows
	ttl       time.Duration
	renewable bool
	uses      int // of a token; zero: any number
	used      map[string]int
	given     int
	renewed   int
	sent      map[string]any
	ends      time.Time
}

func newLogins(path string, ttl time.Duration, renewable bool) *logins {
	l := &logins{fakeStore: newFakeStore(kv2), ttl: ttl, renewable: renewable, used: map[string]int{}}
	auth := func() (int, string) {
		l.ends = time.Now().Add(l.ttl)
		const granted = `{"auth":{"client_token":"canary-%d","lease_duration":%d,"renewable":%v,"num_uses":%d}}`
		return http.StatusOK, fmt.Sprintf(granted, l.given, int(l.ttl/time.Second), l.renewable, l.uses)
	}
	l.do(path, func(r *http.Request) (int, string) {
		l.lock.Lock()
		defer l.lock.Unlock()
		l.sent = nil
		if err := json.NewDecoder(r.Body).Decode(&l.sent); err != nil {
			return http.StatusBadRequest, "{}"
		}
		l.given++
		return auth()
	})
	l.do("auth/token/renew-self", func(r *http.Request) (int, string) {
		l.lock.Lock()
		defer l.lock.Unlock()
		if !l.valid(r) || !l.renewable {
			return http.StatusForbidden, `{"errors":["permission denied"]}`
		}
		l.renewed++
		return auth()
	})
	l.guard("auth/token/lookup-self", `{"data":{}}`)
	l.guard("secret/detailed-metadata?scan", scanned)
	return l
}

// valid reports whether the request has a valid token, and uses it.
func (l *logins) valid(r *http.Request) bool {
	token := r.Header.Get("X-Vault-Token")
	l.used[token]++
	switch {
	case !time.Now().Before(l.ends):
		return false
	case l.uses > 0:
		return strings.HasPrefix(token, "canary-") && l.used[token] <= l.uses
	}
	return token == fmt.Sprintf("canary-%d", l.given)
}

func (l *logins) guard(request, body string) {
	l.do(request, func(r *http.Request) (int, string) {
		l.lock.Lock()
		defer l.lock.Unlock()
		if !l.valid(r) {
			return http.StatusForbidden, `{"errors":["permission denied"]}`
		}
		return http.StatusOK, body
	})
}

// set replaces the current token by the one with the number, which expires at that time.
func (l *logins) set(given int, ends time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.given, l.ends = given, ends
}

const appRole = "stores: [{name: main, address: 'http://bao', auth: {appRole: {roleId: canary-role, secretIdFile: %q, mount: machines}}, poll: {interval: 1m, mounts: [secret]}}]"

func TestATokenIsRenewedBeforeItEnds(t *testing.T) {
	store := newLogins("auth/machines/login", 90*time.Second, true)
	inBubble(t, fmt.Sprintf(appRole, write(t, "secret-id", "canary-secret\n")), store.fakeStore, nil, func(t *testing.T, r *rig) {
		after(30 * time.Minute)
		if store.given != 1 || store.renewed < 25 || store.renewed > 31 {
			t.Errorf("logged in %d times and renewed %d times, want once, and each minute", store.given, store.renewed)
		}
		if store.sent["role_id"] != "canary-role" || store.sent["secret_id"] != "canary-secret" {
			t.Errorf("sent %v", store.sent)
		}
		if failed := r.count(t, "keyturn.openbao.polls", "failure"); failed != 0 {
			t.Errorf("%d polls have failed", failed)
		}
	})
}

func TestATokenThatWasRevokedIsReplacedAtOnce(t *testing.T) {
	store := newLogins("auth/kubernetes/login", time.Hour, true)
	config := fmt.Sprintf("stores: [{name: main, address: 'http://bao', auth: {kubernetes: {role: watcher, tokenFile: %q}}, poll: {mounts: [secret]}}]", write(t, "token", "canary-jwt"))
	inBubble(t, config, store.fakeStore, nil, func(t *testing.T, r *rig) {
		after(5 * time.Minute)
		store.set(1, time.Now())
		after(5 * time.Minute)
		if store.given != 2 || store.sent["role"] != "watcher" || store.sent["jwt"] != "canary-jwt" {
			t.Errorf("logged in %d times, with %v", store.given, store.sent)
		}
		if failed := r.count(t, "keyturn.openbao.polls", "failure"); failed != 0 {
			t.Errorf("%d polls have failed", failed)
		}
	})
}

func TestNobodyLogsInAgainForWhatIsForbidden(t *testing.T) {
	store := newLogins("auth/machines/login", 24*time.Hour, true)
	store.say("secret/detailed-metadata?scan", http.StatusForbidden, "{}")
	store.say("secret/metadata?list", http.StatusForbidden, "{}")
	inBubble(t, fmt.Sprintf(appRole, write(t, "secret-id", "canary-secret")), store.fakeStore, nil, func(t *testing.T, r *rig) {
		after(time.Hour)
		if store.given != 1 || r.count(t, "keyturn.openbao.polls", "failure") < 10 {
			t.Errorf("logged in %d times, want once", store.given)
		}
	})
}

func TestATokenFileIsReadAgain(t *testing.T) {
	store := newLogins("", time.Hour, true)
	file := write(t, "token", "canary-0")
	config := fmt.Sprintf("stores: [{name: main, address: 'http://bao', auth: {tokenFile: %q}, poll: {mounts: [secret]}}]", file)
	inBubble(t, config, store.fakeStore, nil, func(t *testing.T, r *rig) {
		store.set(0, time.Now().Add(time.Hour))
		after(2 * time.Minute)
		before := r.count(t, "keyturn.openbao.polls", "success")
		store.set(1, time.Now().Add(time.Hour))
		testkit.Must(t, os.WriteFile(file, []byte("canary-1\n"), 0o600))
		after(10 * time.Minute)
		if got := r.count(t, "keyturn.openbao.polls", "success"); got < before+8 {
			t.Errorf("%d polls have worked since, want ten:\n%s", got-before, r.log)
		}
		testkit.Must(t, os.Remove(file))
		after(10 * time.Minute)
		if log := r.log.String(); !strings.Contains(log, "auth.tokenFile: reading") {
			t.Errorf("want the log to tell what is missing:\n%s", log)
		}
	})
}

func TestAGivenTokenIsRenewedWhereItCanBe(t *testing.T) {
	store := newLogins("", 90*time.Second, true)
	store.guard("auth/token/lookup-self", `{"data":{"ttl":90,"renewable":true}}`)
	config := "stores: [{name: main, address: 'http://bao', auth: {token: canary-0}, poll: {mounts: [secret]}}]"
	store.set(0, at(t, "2000-01-01T00:01:30Z"))
	inBubble(t, config, store.fakeStore, nil, func(t *testing.T, r *rig) {
		after(30 * time.Minute)
		if store.renewed < 25 || store.renewed > 31 || r.count(t, "keyturn.openbao.polls", "failure") != 0 {
			t.Errorf("renewed %d times, want each minute", store.renewed)
		}
		// Once it has expired, all that is left is a warning.
		store.set(0, time.Now())
		after(30 * time.Minute)
		if got := strings.Count(r.log.String(), "store token not renewed"); got != 1 {
			t.Errorf("logged %d times, want once:\n%s", got, r.log)
		}
	})
}

func TestTokensGoToNobodyElse(t *testing.T) {
	store := newFakeStore(kv2)
	store.do("sys/internal/ui/mounts", func(r *http.Request) (int, string) {
		if got := r.Header.Get("X-Vault-Token"); got != "canary-token" {
			t.Errorf("token %q", got)
		}
		if r.URL.Host != "bao" || r.URL.Scheme != "http" {
			t.Errorf("asked %s", r.URL)
		}
		return http.StatusOK, "{}"
	})
	for _, name := range []string{"VAULT_ADDR", "VAULT_AGENT_ADDR"} {
		t.Setenv(name, "http://elsewhere")
	}
	for _, name := range []string{"VAULT_TOKEN", "BAO_TOKEN", "VAULT_NAMESPACE"} {
		t.Setenv(name, "elsewhere")
	}
	// With two stores the environment is not used.
	config := strings.Replace(pollSecret, "}]", "}, {name: other, address: 'http://other', auth: {token: theirs}}]", 1)
	inBubble(t, config, store, nil, func(_ *testing.T, r *rig) {
		synctest.Wait()
		if store.times("sys/internal/ui/mounts") == 0 || store.times("elsewhere@sys/internal/ui/mounts") != 0 {
			t.Errorf("asked %v\n%s", store.asked, r.log)
		}
	})
}
