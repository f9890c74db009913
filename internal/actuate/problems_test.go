package actuate

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/internal/workload"
)

func TestTheProblemsOfAWorkloadAreToldOnceForEachWording(t *testing.T) {
	options := testOptions()
	kube := newKubeEvents(options, workload.BuiltIn(), options.Logger, nil)
	reported := newProblems(options.Logger, kube)
	problem := func(texts ...string) *workload.Workload {
		w := workloadOf(t, "auto", wholeDB, nil)
		for _, text := range texts {
			w.Problems = append(w.Problems, errors.New(text))
		}
		return w
	}
	for _, step := range []struct {
		name string
		w    *workload.Workload
		want string // empty: nothing is reported
	}{
		{"no problem", problem(), ""},
		{"a problem", problem("a"), "a"},
		{"the same problem", problem("a"), ""},
		{"another one as well", problem("a", "b"), "a; b"},
		{"none any more", problem(), ""},
		{"the first one again", problem("a"), "a"},
	} {
		reported.report(t.Context(), step.w)
		got := ""
		if event := kube.waiting(); event != nil {
			got = event.Message
			if event.Reason != "InvalidAnnotation" || event.Type != "Warning" || event.InvolvedObject.Name != "web" {
				t.Errorf("%s: reported as %s %s of %s", step.name, event.Type, event.Reason, event.InvolvedObject.Name)
			}
		}
		if got != step.want {
			t.Errorf("%s: reported %q, want %q", step.name, got, step.want)
		}
	}
}

func TestALogLineAboutAWorkloadIsShort(t *testing.T) {
	var log bytes.Buffer
	options := testOptions()
	reported := newProblems(slog.New(slog.NewTextHandler(&log, nil)), newKubeEvents(options, workload.BuiltIn(), options.Logger, nil))
	w := workloadOf(t, "auto", wholeDB, nil)
	w.Problems = slices.Repeat([]error{errors.New("keyturn.dev/roll-on: not understood")}, 10_000)
	reported.report(t.Context(), w)
	if size := log.Len(); size == 0 || size > 2*maxProblems {
		t.Errorf("%d bytes were logged, want %d at most", size, 2*maxProblems)
	}
}

func TestTheLogSaysOnceThatAWorkloadIsRolledWithoutItsController(t *testing.T) {
	kinds, reading := targetsOf(t)
	var log bytes.Buffer
	x := indexOf()
	reported := newProblems(slog.New(slog.NewTextHandler(&log, nil)), nil)
	said := func(what string, want int) {
		t.Helper()
		reported.report(t.Context(), x.Get(workload.Key{Kind: "gadget", Namespace: "shop", Name: "web"}))
		if got := strings.Count(log.String(), "workload=gadget/web namespace=shop controller=widget/all"); got != want {
			t.Errorf("%s: said %d times, want %d:\n%s", what, got, want, &log)
		}
	}
	x.Written(ownerNamed(t, kinds, reading, "gadget", "web", "10", "Widget", "all"))
	said("without its controller", 1)
	said("again", 1)
	widget := ownerNamed(t, kinds, reading, "widget", "all", "11", "", "")
	x.Written(widget)
	said("when it is there", 1)
	x.Forget(widget.Key(), widget.ID.UID, "")
	said("when it has gone", 2)
}
