package actuate

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// tellBed is a loop with a workload that has one pod, which is asked to reload after changes of db. Use it within synctest.
type tellBed struct {
	*testing.T
	*loop
	w       *workload.Workload
	client  *fake.Clientset
	patches []string
	// answer is the status that the pod answers with, 0 if it does not listen. Asked counts the requests.
	answer, asked atomic.Int32
}

func newTellBed(t *testing.T, set func(*Options), annotations map[string]string) *tellBed {
	t.Helper()
	b := &tellBed{T: t}
	b.answer.Store(http.StatusOK)
	on := map[string]string{workload.AnnotationRollOn: "auto", workload.AnnotationReload: "http://:9090/-/reload"}
	maps.Copy(on, annotations)
	deployment := mountingDeployment("db", on)
	client := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", UID: "pod", Labels: map[string]string{"app": "web", "pod-template-hash": "1"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "rs", Controller: new(true)}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	})
	client.PrependReactor("patch", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		b.patches = append(b.patches, revisionIn(action))
		after, err := patched(deployment, action)
		return true, after, err
	})
	options := testOptions()
	options.InPlace, options.Client, options.DialPod, options.Now = true, client, b.dial, time.Now
	set(&options)
	w, ok := workload.Read(deployments, deployment, workload.Reading{InPlace: true})
	if !ok || w.InPlace == nil {
		t.Fatalf("it does not reload in place: %v", w.Problems)
	}
	b.w, b.client, b.loop = w, client, loopOf(t, options, w)
	return b
}

// dial connects to the pod.
func (b *tellBed) dial(context.Context, string, string) (net.Conn, error) {
	if b.answer.Load() == 0 {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		buffer := make([]byte, 4096)
		if _, err := server.Read(buffer); err == nil {
			b.asked.Add(1)
			_, _ = server.Write([]byte("HTTP/1.1 " + statusLine(int(b.answer.Load())) + "\r\nContent-Length: 0\r\n\r\n"))
		}
	}()
	return client, nil
}

func statusLine(code int) string {
	if code == http.StatusOK {
		return "200 OK"
	}
	return "500 Internal Server Error"
}

// change makes db change now.
func (b *tellBed) change() {
	b.debounce.pend(b.w, changeOf(func(c *events.Change) { c.Time = time.Now() }))
	b.debounce.release(b.debounce.byKey[b.w.Key()], time.Now())
}

// act dispatches, and finishes what was started.
func (b *tellBed) act() {
	b.dispatcher.dispatch(b.Context())
	if !b.patcher.idle() {
		b.completion.finish(b.Context(), <-b.patcher.results)
	}
}

// said lists the outcomes as text.
func (b *tellBed) said() string {
	var list []string
	for _, one := range b.outbox.waiting {
		list = append(list, string(one.outcome.Verb)+" "+one.outcome.Reason+": "+one.outcome.Message)
	}
	return strings.Join(list, "\n")
}

func TestPodsAreToldWhenTheirFilesAreNewAndOnlyThenItIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTellBed(t, func(*Options) {}, nil)
		b.change()
		b.act()
		if got := b.said(); !strings.HasPrefix(got, "held files-pending: ") || len(b.patches) > 0 {
			t.Fatalf("it is not held: %s, with %d patches", got, len(b.patches))
		}
		<-time.After(2*time.Minute - time.Second)
		if b.act(); len(b.patches) > 0 {
			t.Fatal("it is told too early")
		}
		// db changes again before the files are new.
		b.debounce.pend(b.w, changeOf(func(c *events.Change) {
			c.Time, c.ResourceVersion, c.ChangedAt = time.Now(), "101", "101"
			c.Keys["password"] = events.Key{Fingerprint: fp("4"), ChangedAt: "101"}
		}))
		<-time.After(time.Second)
		if b.act(); len(b.patches) > 0 {
			t.Fatal("it is told before the files have the later change")
		}
		<-time.After(2 * time.Minute)
		b.act()
		if len(b.patches) != 1 || b.patches[0] != "" {
			t.Errorf("the patches have the revisions %q, want one that only records", b.patches)
		}
		if want := "completed reloaded-in-place: 1 pod answered the request to reload at http://:9090/-/reload for secret/db (password)"; !strings.HasSuffix(b.said(), want) {
			t.Errorf("it says\n%s\nwant\n%s", b.said(), want)
		}
		if b.outbox.unpublished != 1 {
			t.Error("the event is done with before the outcome is published")
		}
	})
}

func TestPodsThatHaveReloadedAreAskedAgainOnlyForALaterChange(t *testing.T) {
	for _, tt := range []struct {
		name  string
		later bool
		want  int32
	}{{"not while the patch fails", false, 1}, {"for a change that came meanwhile", true, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTellBed(t, func(o *Options) { o.ReloadDelay = 0 }, nil)
				fails := 3
				b.client.PrependReactor("patch", "deployments", func(k8stesting.Action) (bool, runtime.Object, error) {
					fails--
					return fails >= 0, nil, apierrors.NewInternalError(errors.New("failed calling webhook"))
				})
				b.change()
				b.act()
				if tt.later {
					b.debounce.pend(b.w, changeOf(func(c *events.Change) {
						c.Time, c.ResourceVersion, c.ChangedAt = time.Now(), "101", "101"
						c.Keys["password"] = events.Key{Fingerprint: fp("4"), ChangedAt: "101"}
					}))
				}
				for b.act(); len(b.patches) == 0; b.act() {
					<-time.After(time.Minute)
				}
				if got := b.asked.Load(); got != tt.want {
					t.Errorf("the pod was asked %d times, want %d", got, tt.want)
				}
				if got := b.said(); !strings.Contains(got, "reloaded-in-place: 1 pod answered") {
					t.Errorf("it says %s", got)
				}
			})
		})
	}
}

func TestPodsThatCannotBeToldAreReplaced(t *testing.T) {
	for name, answer := range map[string]int32{"they do not listen": 0, "they do not take it": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTellBed(t, func(o *Options) { o.ReloadDelay = 0 }, nil)
				b.answer.Store(answer)
				b.change()
				b.act()
				if len(b.patches) > 0 {
					t.Fatal("it is patched although nobody was told")
				}
				<-time.After(time.Minute)
				b.act()
				if len(b.patches) != 1 || b.patches[0] == "" {
					t.Errorf("the patches have the revisions %q, want one that rolls", b.patches)
				}
				if got := b.said(); !strings.Contains(got, "; not in place: not every pod confirmed the reload: pod web-1: ") {
					t.Errorf("it says\n%s", got)
				}
			})
		})
	}
}

func TestTellingThatIsCutShortIsNoReasonToReplacePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTellBed(t, func(o *Options) { o.ReloadDelay = 0 }, nil)
		b.answer.Store(0)
		b.change()
		ctx, stop := context.WithCancel(t.Context())
		b.dispatcher.dispatch(ctx)
		stop()
		b.completion.finish(ctx, <-b.patcher.results)
		p := b.debounce.byKey[b.w.Key()]
		if p == nil || p.notReloaded != "" || len(b.patches) > 0 {
			t.Errorf("it is pending: %+v, with %d patches", p, len(b.patches))
		}
	})
}

func TestPeopleWhoHoldRolloutsHoldWhatIsToldInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTellBed(t, func(o *Options) { o.ReloadDelay = 0 }, map[string]string{events.AnnotationHold: "audit"})
		b.change()
		b.act()
		if got := b.said(); !strings.HasPrefix(got, "held on-hold: ") || len(b.patches) > 0 {
			t.Errorf("it says %q, with %d patches", got, len(b.patches))
		}
	})
}

func TestWhoeverAsksForARollNowGetsARollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTellBed(t, func(*Options) {}, map[string]string{workload.AnnotationRollNow: "1"})
		b.change()
		b.act()
		if len(b.patches) != 1 || b.patches[0] == "" || !strings.Contains(b.said(), "; not in place: keyturn.dev/roll-now asks for a rollout") {
			t.Errorf("it says %q, with the patches %q", b.said(), b.patches)
		}
	})
}
