package openbao

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// holding returns a store that has that many secrets at the root of a mount, static roles, and folders with a secret in each. It refuses the first
// ones of each.
func holding(secrets, folders, roles [2]int) *fakeStore {
	store := newFakeStore(`{"secret/":{"type":"kv","options":{"version":"2"}},"database/":{"type":"database"}}`)
	status := func(i, refused int) int {
		if i < refused {
			return http.StatusForbidden
		}
		return http.StatusOK
	}
	var names, listed []string
	for i := range secrets[0] {
		names = append(names, fmt.Sprintf(`"app-%d"`, i))
		store.say(fmt.Sprintf("secret/metadata/app-%d", i), status(i, secrets[1]), metadataOf(1, "1999-01-01T00:00:00Z"))
	}
	for i := range folders[0] {
		names = append(names, fmt.Sprintf(`"team-%d/"`, i))
		store.say(fmt.Sprintf("secret/metadata/team-%d?list", i), status(i, folders[1]), `{"data":{"keys":["app"]}}`)
		store.say(fmt.Sprintf("secret/metadata/team-%d/app", i), http.StatusOK, metadataOf(1, "1999-01-01T00:00:00Z"))
	}
	for i := range roles[0] {
		listed = append(listed, fmt.Sprintf(`"role-%d"`, i))
		store.say(fmt.Sprintf("database/static-roles/role-%d", i), status(i, roles[1]), `{"data":{"last_vault_rotation":"1999-11-20T11:03:06.5Z"}}`)
	}
	store.say("secret/detailed-metadata?scan", http.StatusForbidden, forbidden)
	store.say("secret/metadata?list", http.StatusOK, `{"data":{"keys":[`+strings.Join(names, ",")+`]}}`)
	store.say("database/static-roles?list", http.StatusOK, `{"data":{"keys":[`+strings.Join(listed, ",")+`]}}`)
	return store
}

func TestAPollThatIsRefusedMostOfWhatItAsksForFails(t *testing.T) {
	references := []Reference{referenceTo("root", "invented", "a"), referenceTo("root", "invented", "b")}
	for i := range 41 {
		references = append(references, referenceTo("root", "secret", fmt.Sprintf("app-%d", i)))
	}
	for _, test := range []struct {
		name, poll              string
		secrets, folders, roles [2]int // how many there are, and how many are refused
		want                    string // the failure; empty: the polls succeed
		observed                int
	}{
		{name: "almost all secrets", poll: "mounts: [secret]", secrets: [2]int{41, 40}, want: "40 of 41 requests refused", observed: 1},
		{name: "half of the secrets", poll: "mounts: [secret]", secrets: [2]int{40, 20}, observed: 20},
		{name: "most secrets, in folders that it may list", poll: "mounts: [secret]", secrets: [2]int{3, 3}, folders: [2]int{2, 0}, want: "3 of 5 requests refused", observed: 2},
		{name: "most folders", poll: "mounts: [secret]", folders: [2]int{10, 9}, want: "9 of 12 requests refused", observed: 1},
		{name: "all folders beside many secrets", poll: "mounts: [secret]", secrets: [2]int{10, 0}, folders: [2]int{4, 4}, observed: 10},
		{name: "most static roles", poll: "databaseMounts: [database]", roles: [2]int{3, 2}, want: "2 of 3 requests refused", observed: 1},
		{name: "most referenced paths", poll: "referenced: true", secrets: [2]int{41, 21}, want: "21 of 41 requests refused", observed: 20},
		{name: "less than half of the referenced paths", poll: "referenced: true", secrets: [2]int{41, 20}, observed: 21},
		{name: "most of one mount of two", poll: "mounts: [secret], databaseMounts: [database]", secrets: [2]int{9, 0}, roles: [2]int{3, 2}, want: "2 of 3 requests refused", observed: 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := holding(test.secrets, test.folders, test.roles)
			config := withToken + "{interval: 1m, " + test.poll + "}}]"
			inBubble(t, config, store, referring(references...), func(t *testing.T, r *rig) {
				after(40 * time.Minute)
				fails := test.want != ""
				failed, worked := r.count(t, "keyturn.openbao.polls", "failure"), r.count(t, "keyturn.openbao.polls", "success")
				if failed > 0 != fails || worked > 0 == fails {
					t.Errorf("%d polls failed and %d worked", failed, worked)
				}
				if at, _ := r.feed.pipelines[0].status.lastSeen(); at.IsZero() != fails {
					t.Errorf("the last successful poll was at %v", at)
				}
				if log := r.log.String(); !strings.Contains(log, test.want) || strings.Contains(log, "can be read again") {
					t.Errorf("want the log to tell of %q, and of no success:\n%s", test.want, log)
				}
				if got := len(r.seen()); got != test.observed {
					t.Errorf("observed %d paths, want %d", got, test.observed)
				}
			})
		})
	}
}
