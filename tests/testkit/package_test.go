package testkit

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a test whose failures are counted instead of reported.
type recorder struct {
	testing.TB
	failures int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failures++ }
func (r *recorder) Fatalf(string, ...any) { r.failures++ } // unlike with a test, the code goes on after it

func TestGoldenReportsADifference(t *testing.T) {
	if *update {
		t.Skip("-update writes the file")
	}
	path := filepath.Join(t.TempDir(), "golden")
	WriteFile(t, path, "as it was")
	r := &recorder{TB: t}
	if Golden(r, path, []byte("as it was")); r.failures != 0 {
		t.Error("equal content is reported")
	}
	if Golden(r, path, []byte("as it is")); r.failures != 1 {
		t.Error("different content is not reported")
	}
}

func TestRunWaitsForTheProgramAndReportsItsError(t *testing.T) {
	ended := false
	stop := Run(t, "program", func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return nil
	})
	stop()
	stop()
	if !ended {
		t.Error("stop returned before the program did")
	}
	r := &recorder{TB: t}
	Run(r, "program", func(context.Context) error { return errors.New("broken") })()
	if r.failures != 1 {
		t.Error("the program's error is not reported")
	}
}

func TestWantErrorComparesTheText(t *testing.T) {
	r := &recorder{TB: t}
	WantError(r, nil, "")
	if WantError(r, errors.New("broken"), "broken"); r.failures != 0 {
		t.Error("an expected result is reported")
	}
	WantError(r, nil, "broken")
	if WantError(r, errors.New("broken"), ""); r.failures != 2 {
		t.Errorf("%d unexpected results are reported, want 2", r.failures)
	}
}
