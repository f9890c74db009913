package workload

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAnnotationsThatAreTooLong(t *testing.T) {
	for annotation, list := range map[string]string{AnnotationRollOn: "secret/db", "secret.reloader.stakater.com/reload": "db"} {
		t.Run(annotation, func(t *testing.T) {
			list += strings.Repeat(" ", maxAnnotation-len(list))
			if _, errs := parseOptIn(map[string]string{annotation: list}, nil, Reading{}); len(errs) > 0 {
				t.Errorf("of %d bytes: errors %v", len(list), errs)
			}
			optIn, errs := parseOptIn(map[string]string{annotation: list + " ", "reloader.stakater.com/auto": "true"}, nil, Reading{})
			want := []string{annotation + ": is 16385 bytes long, want at most 16384"}
			testkit.WantEqual(t, "errors", want, lines(errs))
			if names := optIn.names(""); len(names) > 0 || !optIn.Wants(app, reads(), false).Wanted() {
				t.Errorf("names %v were read, or the other annotation was not", names)
			}
		})
	}
}

func TestOnlyTheFirstErrorsOfAnAnnotationAreKept(t *testing.T) {
	annotations := map[string]string{
		AnnotationRollOn:                      strings.Repeat("A,", maxItems-1),
		"secret.reloader.stakater.com/reload": strings.Repeat("*,", maxItems-1) + "db",
	}
	w := readAs(t, deployments, webDeployment("50", annotations), Reading{})
	if len(w.Problems) != 2*maxItemErrors {
		t.Fatalf("%d problems, want %d", len(w.Problems), 2*maxItemErrors)
	}
	last := w.Problems[maxItemErrors-1].Error()
	if got := w.OptIn.Wants(db, nil, false).Reason; got != byName || !strings.HasSuffix(last, ". 989 more items are invalid") {
		t.Errorf("the last problem of the first annotation is %q, and the valid item is %s", last, got)
	}
}

func lines(errs []error) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}
