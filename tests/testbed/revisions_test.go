package testbed

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/tests/testkit"
)

// TestRevisionsMissNothingWhileServersAreDown writes a ConfigMap before and after each of the two servers is killed.
func TestRevisionsMissNothingWhileServersAreDown(t *testing.T) {
	namespace := bed.Namespace(t)
	ctx, cancel := context.WithCancel(t.Context())
	var (
		mu       sync.Mutex
		seen     []string
		versions []int64
		reading  sync.WaitGroup
	)
	reading.Go(func() {
		err := bed.Revisions(ctx, "configmaps", namespace, 0, func(revision Revision) error {
			if revision.Name != "app" {
				return nil // the cluster adds one to each namespace
			}
			mu.Lock()
			defer mu.Unlock()
			content := "deleted"
			if object, ok := revision.Object.(*corev1.ConfigMap); ok {
				content = object.Data["n"]
			}
			seen, versions = append(seen, content), append(versions, revision.Version)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	defer func() {
		cancel()
		reading.Wait()
	}()

	var want []string
	var written []int64
	configMaps := bed.client.CoreV1().ConfigMaps(namespace)
	write := func() {
		t.Helper()
		n := strconv.Itoa(len(want))
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Data: map[string]string{"n": n}}
		// The API server may not have noticed yet that etcd is back.
		testkit.Await(t, "version "+n+" is written", func(ctx context.Context) bool {
			ctx, stop := context.WithTimeout(ctx, 5*time.Second)
			defer stop()
			result, err := configMaps.Update(ctx, object, metav1.UpdateOptions{})
			if err != nil {
				result, err = configMaps.Create(ctx, object, metav1.CreateOptions{})
			}
			if err != nil {
				return false
			}
			version, err := strconv.ParseInt(result.ResourceVersion, 10, 64)
			testkit.Must(t, err)
			want, written = append(want, n), append(written, version)
			return true
		})
	}
	write()
	write()
	testkit.Must(t, bed.RestartAPIServer(t.Context()))
	write()
	bed.KillEtcd()
	testkit.Must(t, bed.StartEtcd(t.Context()))
	write()
	testkit.Must(t, configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{}))
	want = append(want, "deleted")
	testkit.Await(t, "the deletion is seen", func(context.Context) bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) > 0 && seen[len(seen)-1] == "deleted"
	})
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Fatalf("contents (-written +seen):\n%s", diff)
	}
	if diff := cmp.Diff(written, versions[:len(written)]); diff != "" {
		t.Errorf("resourceVersions (-returned +seen):\n%s", diff)
	}
}
