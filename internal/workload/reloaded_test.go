package workload

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
)

func TestWhatReloaderLeavesTellsWhatItMayHaveRolledFor(t *testing.T) {
	marker := func(name string, before time.Duration) string {
		return fmt.Sprintf(`{"type":"SECRET","name":%q,"observedAt":%d}`, name, written.Add(-before).Unix())
	}
	const db, mail = "STAKATER_DB_SECRET", "STAKATER_MAIL_SECRET"
	tests := []struct {
		name, marker string
		variables    []string
		want         bool
	}{
		{"a marker of the source", marker("db", 0), nil, true},
		{"a marker of another source", marker("mail", 0), nil, false},
		{"a marker of another source, by another clock", marker("mail", time.Hour), nil, false},
		{"a marker of another source, and a variable from before that", marker("mail", time.Second), []string{db}, false},
		{"a marker of another source from before, and a variable", marker("mail", time.Hour), []string{db, mail}, true},
		{"a marker of the source from before, and a variable of another", marker("db", time.Hour), []string{mail}, false},
		{"a variable of the source", "", []string{db}, true},
		{"a variable of another source", "", []string{mail}, false},
		{"variables of both", "", []string{mail, db}, true},
		{"what nobody can read", "{", nil, true},
		{"nothing", "", nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			at, d := metav1.NewTime(written), webDeployment("9", nil)
			d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: ReloaderManager, Time: &at}}
			if test.marker != "" {
				d.Spec.Template.Annotations = map[string]string{AnnotationReloadedFrom: test.marker}
			}
			for _, name := range test.variables {
				c := &d.Spec.Template.Spec.Containers[0]
				c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: "1"})
			}
			w, _ := Read(deployments, d, Reading{Reloader: true})
			if got := w.MayBeReloadedFor(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
	plain, _ := Read(deployments, webDeployment("9", nil), Reading{})
	if !plain.MayBeReloadedFor(events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}) {
		t.Error("without --reloader nothing is known of Reloader, and it may not have been")
	}
}
