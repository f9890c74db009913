package tests

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// projections returns what was published about a Widget, the newest at the end. While the disk is busy, that may take several attempts.
func (r *projectRig) projections(name string) (list []events.Projection) {
	r.Helper()
	query := bus.HistoryQuery{Clusters: []string{projectCluster}, Kind: events.KindProjection, Namespace: r.namespace, Name: "widget-" + name}
	var failed error
	testkit.Await(r.T, "what was published about "+name+" can be read", func(context.Context) bool {
		list = nil
		failed = r.bus.History(r.Context(), query, func(stored events.Stored) error {
			p, err := stored.Projection()
			list = append(list, p)
			return err
		})
		return failed == nil
	}, func() string { return fmt.Sprintf("the last attempt: %v", failed) })
	return list
}

// awaitProjection waits until the newest about a Widget has a reason, and returns it.
func (r *projectRig) awaitProjection(name, reason string) events.Projection {
	r.Helper()
	var newest events.Projection
	testkit.Await(r.T, "of "+name+" it is reported: "+reason, func(context.Context) bool {
		list := r.projections(name)
		if len(list) == 0 {
			return false
		}
		newest = list[len(list)-1]
		return newest.Reason == reason
	})
	return newest
}

// leaksNothing looks for a value in all that came out of the projector.
func (r *projectRig) leaksNothing(values ...string) {
	r.Helper()
	h := &haystack{}
	h.add("the log", []byte(r.projector.Output()))
	list, err := r.kube.CoreV1().Events(r.namespace).List(r.Context(), metav1.ListOptions{})
	testkit.Must(r, err)
	h.addJSON(r.T, "the Kubernetes Events", list)
	natstest.Publish(r.T, func() error {
		return r.bus.History(r.Context(), bus.HistoryQuery{Kind: events.KindProjection}, func(stored events.Stored) error {
			h.addJSON(r.T, "the stream", stored.Event())
			return nil
		})
	})
	_, metrics, err := r.projector.Get(r.Context(), "metrics", "/metrics")
	testkit.Must(r, err)
	h.add("the metrics", []byte(metrics))
	for _, name := range []string{"the log", "the stream", "the metrics", "the Kubernetes Events"} {
		if h.sizeOf(name) == 0 {
			r.Errorf("%s: nothing came out, and so the search would find nothing", name)
		}
	}
	for _, value := range values {
		for _, leak := range h.leaks([]byte(value)) {
			r.Errorf("a value: %s", leak)
		}
	}
}
