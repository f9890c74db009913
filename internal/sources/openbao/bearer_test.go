package openbao

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestATokenIsOfOneStore(t *testing.T) {
	for _, test := range []struct {
		name, content string
		stores        []string
		wrong         string // of the error
		store         string
		want          bool
	}{
		{name: "the only store needs no name", content: goodToken, stores: []string{"one"}, store: "one", want: true},
		{name: "the store by its name", content: "two " + otherToken + "\none\t" + goodToken, stores: []string{"one", "two"}, store: "one", want: true},
		{name: "another store", content: "one " + goodToken, stores: []string{"one", "two"}, store: "two"},
		{name: "one token of two stores", content: "one " + goodToken + "\ntwo " + goodToken, stores: []string{"one", "two"}, store: "two", want: true},
		{name: "several stores need names", content: goodToken, stores: []string{"one", "two"}, wrong: "token 1 is not for one of the stores"},
		{name: "a store that is not there", content: "one " + otherToken + "\nthree " + goodToken, stores: []string{"one", "two"}, wrong: "token 2 is not for one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, err := bearersOf(t, test.content, test.stores...)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) || strings.Contains(err.Error(), goodToken) {
					t.Errorf("%v, want %q and no token", err, test.wrong)
				}
				return
			}
			testkit.Must(t, err)
			if got := b.allow(&http.Request{Header: http.Header{"Authorization": {"Bearer " + goodToken}}}, &intake{store: test.store}); got != test.want {
				t.Errorf("allowed: %t, want %t", got, test.want)
			}
		})
	}
}

// bearersOf returns the bearers of a file of tokens.
func bearersOf(t *testing.T, content string, stores ...string) (*bearers, error) {
	t.Helper()
	return newBearers(write(t, "tokens", content), &Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, stores)
}
