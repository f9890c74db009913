package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnnotationsThatAreTooLong(t *testing.T) {
	for _, annotation := range []string{
		AnnotationRollOn, "secret.reloader.stakater.com/reload", "configmaps.exclude.reloader.stakater.com/reload",
	} {
		t.Run(annotation, func(t *testing.T) {
			list := "db"
			if annotation == AnnotationRollOn {
				list = "secret/db"
			}
			list += strings.Repeat(" ", maxAnnotation-len(list))
			if _, errs := parseOptIn(map[string]string{annotation: list}, nil, Reading{}); len(errs) > 0 {
				t.Errorf("of %d bytes: errors %v", len(list), errs)
			}
			optIn, errs := parseOptIn(map[string]string{annotation: list + " ", "reloader.stakater.com/auto": "true"}, nil, Reading{})
			want := []string{annotation + ": is 16385 bytes long, want at most 16384"}
			if diff := cmp.Diff(want, lines(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if names := optIn.names(""); len(names) > 0 || !optIn.Wants(app, reads(), false).Wanted() {
				t.Errorf("names %v were read, or the other annotation was not", names)
			}
		})
	}
}

func TestOnlyTheFirstErrorsOfAnAnnotationAreKept(t *testing.T) {
	const reload, exclude = "secret.reloader.stakater.com/reload", "configmaps.exclude.reloader.stakater.com/reload"
	annotations := map[string]string{
		AnnotationRollOn: strings.Repeat("A,", maxItems-1),
		reload:           strings.Repeat("*,", maxItems-1) + "db",
		exclude:          strings.Repeat("A,", maxItemErrors),
	}
	w, _ := Read(deployments, webDeployment("50", annotations), Reading{})
	if len(w.Problems) != 3*maxItemErrors {
		t.Fatalf("%d problems, want %d", len(w.Problems), 3*maxItemErrors)
	}
	for i, want := range []string{". 989 more items are invalid", ". 989 more items are invalid", ""} {
		text := w.Problems[(i+1)*maxItemErrors-1].Error()
		if !strings.HasSuffix(text, want) || strings.Contains(text, "more items") != (want != "") {
			t.Errorf("the last problem of the annotation is %q, want the end %q", text, want)
		}
	}
	if got := w.OptIn.Wants(db, nil, false).Reason; got != byName {
		t.Errorf("the valid item is %s", got)
	}
	paths := strings.Repeat("openbao:kv/db,", 100)
	if w, _ = Read(deployments, webDeployment("50", rollOn(paths)), Reading{}); len(w.Problems) != maxItemErrors {
		t.Errorf("of paths that are not granted there are %d problems, want %d", len(w.Problems), maxItemErrors)
	}
}

func lines(errs []error) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}
