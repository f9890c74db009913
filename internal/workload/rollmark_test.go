package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// lastRoll is the mark of a roll for a change of db.
func lastRoll(change func(*Last)) Last {
	last := Last{Revision: "2f6e9a530d3c1b0f", At: written, For: Marked{"secret/db@123/5f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11"}, Was: wasFine}
	if change != nil {
		change(&last)
	}
	return last
}

// manyChanges are changes of sources with a name of a given length.
func manyChanges(count, length int) Marked {
	var list Marked
	for i := range count {
		list = append(list, changeText(fmt.Sprintf("secret/%0*d", length, i), RolledFor{Version: "4711", UID: "5f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11"}))
	}
	return list
}

// TestGoldenLast holds the form of the annotation, which docs/reference/annotations.md describes: the next version reads what this one has written.
func TestGoldenLast(t *testing.T) {
	marks := []Last{
		lastRoll(nil),
		lastRoll(func(l *Last) { l.Failed, l.Since = "timed-out", written.Add(10*time.Minute) }),
		lastRoll(func(l *Last) {
			l.Was, l.With = wasFailing, Marked{"openbao/main/root/kv/shop/db@7/main", "configmap/app@99/6f0c2a4e-6c1d-4f6e-9a53-0d3c1b0f7a11"}
		}),
		lastRoll(func(l *Last) { l.For = append(l.For, "+3") }),
		lastRoll(func(l *Last) { l.Revision = "" }),
	}
	var lines strings.Builder
	for _, last := range marks {
		text := last.format()
		lines.WriteString(text + "\n")
		if diff := cmp.Diff(last, parseLast(text)); diff != "" {
			t.Errorf("%s is read otherwise (-want +got):\n%s", text, diff)
		}
	}
	testkit.Golden(t, "testdata/last.golden", []byte(lines.String()))
}

func TestAMarkFitsIntoItsAnnotation(t *testing.T) {
	tests := []struct {
		name           string
		list           Marked
		named, leftOut int
	}{
		{"one more", manyChanges(17, 1), 16, 1},
		{"those of a mark that leaves some out", append(manyChanges(17, 1), "+5"), 16, 6},
		{"a path in a store that is too long to be named", Marked{"openbao/" + strings.Repeat("<", 1000) + "@1/main"}, 0, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := lastRoll(func(l *Last) {
				l.For, l.With, l.Was, l.Failed, l.Since = test.list, test.list, wasFailing, strings.Repeat("f", maxWord), written
				l.Revision = strings.Repeat("a", maxWord)
			}).format()
			read := parseLast(text)
			for _, list := range []Marked{read.For, read.With} {
				if named, leftOut := list.split(); len(text) > maxLast || len(named) != test.named || leftOut != test.leftOut {
					t.Errorf("%d bytes name %d changes and leave out %d: %s", len(text), len(named), leftOut, text)
				}
			}
		})
	}
}

func TestWhatIsNoMarkIsReadAsNone(t *testing.T) {
	mark := lastRoll(nil).format()
	tests := []struct {
		name, text string
		want       Last
	}{
		{"a long one", strings.Replace(mark, "secret", strings.Repeat("s", maxLast), 1), Last{}},
		{"one with fields of a later version", strings.Replace(mark, "{", `{"later":{"than":["this"]},`, 1), lastRoll(nil)},
		{"one from another time zone", strings.Replace(mark, "15:09:26Z", "17:09:26+02:00", 1), lastRoll(nil)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseLast(test.text), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARollLeavesItsMarkIfItIsAskedFor(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}
	for _, name := range BuiltIn().Names() {
		t.Run(name, func(t *testing.T) {
			kind, _ := BuiltIn().Named(name)
			f := newFenced(t, kind, everyKind(metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "w"}, template)[name])
			before := f.read()
			plain := f.patchOf(before, "100", Write{Rolls: true})
			if strings.Contains(string(plain.Body), "keyturn.dev~1last") {
				t.Errorf("a roll without a mark writes one: %s", plain.Body)
			}
			last := lastRoll(func(l *Last) { l.Revision = "" })
			p := f.patchOf(before, "100", Write{Rolls: true, Last: &last})
			if p.Revision != plain.Revision {
				t.Errorf("with the mark the revision is %s, without it %s", p.Revision, plain.Revision)
			}
			testkit.Must(t, f.send(p))
			want := lastRoll(func(l *Last) { l.Revision = p.Revision })
			rolled := f.read()
			if diff := cmp.Diff(want, rolled.Last); diff != "" || rolled.Revision != p.Revision {
				t.Errorf("at the revision %s, the mark is (-want +got):\n%s", rolled.Revision, diff)
			}

			// A note says that the rollout failed, once.
			failed := rolled.Last
			failed.Failed, failed.Since = "timed-out", written
			note := f.patchOf(rolled, "100", Write{Last: &failed})
			testkit.Must(t, f.send(note))
			if got := f.read(); got.Last.Failed != "timed-out" || got.Last.Revision != got.Revision {
				t.Errorf("after the note the mark is %+v, at the revision %s", got.Last, got.Revision)
			}
			if err := f.send(note); err == nil {
				t.Error("a note is written on a mark that it was not made from")
			}
			// A roll that had no effect leaves the mark of before.
			testkit.Must(t, f.send(f.patchOf(f.read(), "100", Write{Before: rolled})))
			testkit.WantEqual(t, "the mark of before is", want, f.read().Last)
		})
	}
}

func FuzzParseLast(f *testing.F) {
	f.Add(lastRoll(nil).format())
	f.Add(lastRoll(func(l *Last) {
		l.For, l.With, l.Was, l.Failed = manyChanges(40, 9), Marked{"+2"}, wasFailing, "aborted"
	}).format())
	f.Add(`{"at":"9999-12-31T23:59:59-23:59","for":["+","+1","\u2028<>&","\ud800"],"with":["+-1"],"since":"0000-01-01T00:00:00+23:59"}`)
	f.Add(`{"rev":"` + strings.Repeat("a", 65) + `"}`)
	f.Fuzz(func(t *testing.T, text string) {
		read := parseLast(text)
		if read.Was == "" {
			return // It is no mark.
		}
		written := read.format()
		if len(written) > maxLast {
			t.Errorf("%q is written as %d bytes: %s", text, len(written), written)
		}
		again := parseLast(written)
		if diff := cmp.Diff(written, again.format()); diff != "" {
			t.Errorf("%q is written otherwise after it was read again (-want +got):\n%s", text, diff)
		}
		read.For, read.With, again.For, again.With = nil, nil, nil, nil // which may name fewer
		if !cmp.Equal(read, again) {
			t.Errorf("%q is read as %+v, and then as %+v", text, read, again)
		}
		d := webDeployment("50", map[string]string{annotationLast: text})
		d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
		if w, ok := Read(deployments, d, Reading{}); !ok || w.Last.Revision != read.Revision {
			t.Errorf("of a Deployment, %q is read as %+v", text, w.Last)
		}
	})
}
