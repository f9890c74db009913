package forcesync

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/keyturn/keyturn/internal/externalsecret"
)

func TestEachProblemIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	p := newProblems(slog.New(slog.NewTextHandler(&log, nil)))
	name := types.NamespacedName{Namespace: "shop", Name: "db"}
	with := func(text string) *externalsecret.ExternalSecret {
		return &externalsecret.ExternalSecret{Problems: []error{errors.New(text)}}
	}
	for _, es := range []*externalsecret.ExternalSecret{with("one"), with("one"), with("two"), {}, with("two"), nil} {
		p.review(t.Context(), name, es)
	}
	if got := strings.Count(log.String(), "\n"); got != 3 {
		t.Errorf("%d lines, want 3: one, two, and two again after it was gone\n%s", got, &log)
	}
	if len(p.logged) != 0 {
		t.Errorf("something is left: %v", p.logged)
	}
}

func TestWhatIsLoggedAboutAnExternalSecretIsBounded(t *testing.T) {
	var log bytes.Buffer
	p := newProblems(slog.New(slog.NewTextHandler(&log, nil)))
	es := &externalsecret.ExternalSecret{Problems: slices.Repeat([]error{errors.New("find.name.regexp: missing closing )")}, 10_000)}
	p.review(t.Context(), types.NamespacedName{Namespace: "shop", Name: "db"}, es)
	if size := log.Len(); size == 0 || size > 2*maxProblems {
		t.Errorf("%d bytes were logged, want %d at most", size, 2*maxProblems)
	}
}
