package workload

import (
	"fmt"
	"testing"
	"time"
)

func TestEachWorkloadHasItsOwnMomentWhenAWindowOpens(t *testing.T) {
	noon := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	opens := time.Date(2026, 3, 15, 1, 0, 0, 0, time.UTC)
	moments := map[time.Time]bool{}
	for i := range 500 {
		deployment := webDeployment("50", map[string]string{AnnotationWindow: "0 1 * * 0 for 3h"})
		deployment.Name = fmt.Sprintf("web-%d", i)
		w, _ := Read(deployments, deployment, Reading{})
		at, ok := w.Opening(noon)
		if !ok || at.Before(opens) || !at.Before(opens.Add(5*time.Minute)) {
			t.Fatalf("it may be rolled from %s on, %t", at, ok)
		}
		again, _ := Read(deployments, deployment, Reading{})
		if other, _ := again.Opening(noon.Add(time.Hour)); !other.Equal(at) {
			t.Fatalf("read again it may be rolled from %s on instead of %s", other, at)
		}
		moments[at] = true
	}
	if len(moments) < 490 {
		t.Errorf("500 workloads have %d moments", len(moments))
	}
}

func TestAWindowThatIsNotValidIsReportedAndStaysClosed(t *testing.T) {
	w, _ := Read(deployments, webDeployment("50", map[string]string{AnnotationWindow: "at night"}), Reading{})
	if at, ok := w.Opening(time.Now()); ok {
		t.Errorf("it opens at %s", at)
	}
	const want = `keyturn.dev/window: "at night": want "<minute> <hour> <day of month> <month> <day of week> for <duration> <zone>", such as ` +
		`"0 1 * * 1-5 for 3h Europe/Berlin". It is not rolled until that is fixed, or keyturn.dev/roll-now is set`
	if len(w.Problems) != 1 || w.Problems[0].Error() != want {
		t.Errorf("the problems are %v, want %s", w.Problems, want)
	}
}
