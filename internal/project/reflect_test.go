package project

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestWhatIsSaidToAListIsNotRepeated(t *testing.T) {
	const value = "s3cret-of-a-webhook"
	answer := func(code int32, why metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: why, Message: "conversion webhook failed: " + value}}
	}
	ended := &metav1.Status{Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError, Message: value}
	for _, tt := range []struct {
		name, want string
		list       error
		watch      runtime.Object
	}{
		{"an error of a webhook", "listing and watching: InternalError (code 500)", answer(500, metav1.StatusReasonInternalError), nil},
		{"a refusal", "grant it as in deploy/projections/example: listing and watching: Forbidden (code 403)", answer(403, metav1.StatusReasonForbidden), nil},
		{"no answer", "listing and watching: no response from the api server", errors.New("proxy: " + value), nil},
		{"a watch that ends with an error", "listing and watching", nil, ended},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kinds, err := parseConfig([]byte(widgets))
			testkit.Must(t, err)
			lists := map[schema.GroupVersionResource]string{kinds[0].resource: "WidgetList"}
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
			client.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
				list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "WidgetList"}}
				return true, list, tt.list
			})
			client.PrependWatchReactor("widgets", func(clienttesting.Action) (bool, watch.Interface, error) {
				if tt.list != nil {
					return true, nil, tt.list
				}
				w := watch.NewFakeWithChanSize(1, false)
				w.Error(tt.watch)
				return true, w, nil
			})
			log := &testkit.Log{}
			s, _ := testIndex(t)
			r := newReflectors(client, s.index, kinds, slog.New(slog.NewJSONHandler(log, nil)))
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			running.Go(func() { r.reflect(ctx, kinds[0], "shop") })
			testkit.Eventually(t, "the log has it", func() bool { return strings.Contains(log.String(), tt.want) }, log.String)
			if strings.Contains(log.String(), value) {
				t.Errorf("the log repeats it:\n%s", log)
			}
			if err := r.lists.Ready(); err != nil && strings.Contains(err.Error(), value) {
				t.Errorf("the probe repeats it: %v", err)
			}
		})
	}
}
