package forcesync

import (
	"bytes"
	"errors"
	"log/slog"
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
