package actuate

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

func TestTellingPodsTakesNoWorkerFromPatches(t *testing.T) {
	p := &patcher{workers: 16, underWay: make(map[workload.Key]*task)}
	for ns := range 5 {
		name := fmt.Sprintf("tenant-%d", ns)
		for i := 0; p.mayReload(name); i++ {
			p.underWay[workload.Key{Namespace: name, Name: strconv.Itoa(i), Kind: "deployment"}] = &task{way: way{inPlace: true}}
		}
	}
	if n := len(p.underWay); n > 16 || p.mayReload("tenant-0") {
		t.Errorf("pods of %d workloads are told at a time", n)
	}
	if own, _ := p.room("tenant-0", true); own > 8 {
		t.Errorf("%d of them are of one namespace", own)
	}
	if p.full() || !p.hasRoom("shop") || !p.hasRoom("tenant-0") {
		t.Error("nothing is patched meanwhile")
	}
}

func TestAWorkloadWaitsForAPlaceToHaveItsPodsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTellBed(t, func(o *Options) { o.ReloadDelay, o.PatchWorkers = 0, 1 }, nil)
		other := workload.Key{Namespace: "bank", Name: "web", Kind: "deployment"}
		b.patcher.underWay[other] = &task{way: way{inPlace: true}, workload: &workload.Workload{}}
		b.change()
		b.dispatcher.dispatch(t.Context())
		if b.patcher.busy(b.w.Key()) {
			t.Fatal("it is told beside the other, although there is one place")
		}
		delete(b.patcher.underWay, other)
		<-time.After(reloadPause)
		if b.act(); len(b.patches) != 1 || b.patches[0] != "" {
			t.Errorf("the patches have the revisions %q, want one that only records", b.patches)
		}
	})
}

func TestPodsAreReplacedIfTheirSourceChangesAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTellBed(t, func(*Options) {}, nil)
		b.change()
		for i := range 10 {
			b.dispatcher.dispatch(b.Context())
			if !b.patcher.idle() {
				break
			}
			<-time.After(time.Minute)
			b.debounce.pend(b.w, changeOf(func(c *events.Change) {
				v := strconv.Itoa(101 + i)
				c.Time, c.ResourceVersion, c.ChangedAt = time.Now(), v, v
				c.Keys["password"] = events.Key{Fingerprint: fp(strconv.Itoa(i % 7)), ChangedAt: v}
			}))
			b.debounce.release(b.debounce.byKey[b.w.Key()], time.Now())
		}
		if b.patcher.idle() {
			t.Fatal("it is neither told nor rolled in ten minutes")
		}
		b.completion.finish(t.Context(), <-b.patcher.results)
		if len(b.patches) != 1 || b.patches[0] == "" || !strings.Contains(b.said(), "; not in place: its sources change too often") {
			t.Errorf("it says %q, with the patches %q", b.said(), b.patches)
		}
	})
}

func TestAListThatFailsIsNoReasonToReplacePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTellBed(t, func(o *Options) { o.ReloadDelay = 0 }, nil)
		lists := 0
		b.client.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
			lists++
			return lists <= 20, &corev1.PodList{}, apierrors.NewServerTimeout(corev1.Resource("pods"), "list", 1)
		})
		b.change()
		for range 21 {
			b.act()
			<-time.After(2 * time.Minute)
		}
		if len(b.patches) != 1 || b.patches[0] != "" {
			t.Errorf("the patches have the revisions %q, want one that only records, after %d lists", b.patches, lists)
		}
	})
}

func TestPodsOfWhichOneIsNotReadyAreToldForAWhileBeforeTheyAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTellBed(t, func(o *Options) { o.ReloadDelay = 0 }, nil)
		pods, err := b.client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods.Items[0].Status.Conditions = nil
		if err := b.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), &pods.Items[0], "shop"); err != nil {
			t.Fatal(err)
		}
		b.answer.Store(http.StatusInternalServerError)
		b.change()
		for range maxStarting {
			b.act()
			<-time.After(2 * time.Minute)
		}
		if len(b.patches) > 0 {
			t.Fatalf("it is patched at once: %s", b.said())
		}
		b.act()
		<-time.After(2 * time.Minute)
		b.act()
		if len(b.patches) != 1 || b.patches[0] == "" || !strings.Contains(b.said(), "; not in place: not every pod confirmed the reload: pod web-1: it is not ready: ") {
			t.Errorf("it says %q, with the patches %q", b.said(), b.patches)
		}
	})
}
