package tests

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
	"github.com/keyturn/keyturn/tests/testkit/running"
)

const (
	// stormSize is how many ExternalSecrets read one path, and nightlyStorm how many in make test-nightly. KEYTURN_STORM_SIZE is another number, such as 500.
	stormSize, nightlyStorm = 60, 200
	// stormPatience is how long the operator may take to sync all of them, one at a time.
	stormPatience = 10 * time.Minute
	// maxSyncs is the default of --max-syncs.
	maxSyncs = 5
)

// TestAStormOfSyncsFloodsNobodyAndHoldsUpNoOther rotates what very many ExternalSecrets read, and in the middle of it what
// another one does. It is not parallel: it keeps the operator busy that the tests share, and counts what waits for that.
func TestAStormOfSyncsFloodsNobodyAndHoldsUpNoOther(t *testing.T) {
	size := stormSize
	if testkit.IsNightly() {
		size = nightlyStorm
	}
	if text := os.Getenv("KEYTURN_STORM_SIZE"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatalf("KEYTURN_STORM_SIZE: %v", err)
		}
	}
	s := newStoreRig(t, byHTTP, programs.Options{})
	s.put("shop/shared", "one")
	s.put("shop/other", "one")
	var shared []string
	for i := range size {
		name := "shared-" + strconv.Itoa(i)
		shared = append(shared, manifests.ExternalSecret{Namespace: s.namespace, Name: name, Store: "bao", Path: "shop/shared"}.YAML())
		deployment := s.reading("app-"+strconv.Itoa(i), name, 0, nil)
		if _, err := s.client.AppsV1().Deployments(s.namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	s.apply(manifests.Join(shared...))
	s.externalSecret("other", "shop/other")
	s.awaitMany(size, "one")
	t.Logf("%d ExternalSecrets are there after %v", size, time.Since(start).Round(time.Millisecond))
	s.start()
	before := s.generations()

	// It looks at each again that it has made a Secret for.
	s.eventually("the operator has nothing left to do", func(ctx context.Context) bool {
		depth, err := operatorDepth(ctx)
		return err == nil && depth == 0
	})
	deepest := sampleDepth(t)
	start = time.Now()
	s.put("shop/shared", "two")
	s.awaitMany(size/4, "two")
	s.put("shop/other", "two")
	ahead := len(s.written("two"))
	s.awaitMany(size+1, "two")
	took := time.Since(start)
	// However long the test takes to look, etcd has the order of the writes.
	overtaken := slices.Index(s.written("two"), "other") - ahead
	depth := deepest()
	t.Logf("%d synced in %v, %v each; the other after %d of them; the operator's queue had at most %d",
		size, took.Round(time.Millisecond), (took / time.Duration(size)).Round(time.Millisecond), overtaken, depth)
	// The operator looks at an ExternalSecret again when its Secret has changed.
	if limit := 6 * maxSyncs; depth > limit {
		t.Errorf("the operator's queue had up to %d, want at most %d", depth, limit)
	}
	// It would come after three quarters of the storm if it had to wait for its turn. Of a smaller storm no more than the limit is left by then: there
	// this says nothing.
	if limit := 16 * maxSyncs; size >= nightlyStorm && overtaken > limit {
		t.Errorf("the other waited for %d of the storm, want at most %d", overtaken, limit)
	}
	s.eachRolledOnce(before)
}

// written are the names of the Secrets that hold a value, in the order in which they were last written.
func (s *storeRig) written(value string) []string {
	s.Helper()
	list, err := s.client.CoreV1().Secrets(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	holding := slices.DeleteFunc(list.Items, func(secret corev1.Secret) bool { return string(secret.Data["password"]) != value })
	slices.SortFunc(holding, func(a, b corev1.Secret) int {
		// They are decimal numbers.
		return cmp.Or(cmp.Compare(len(a.ResourceVersion), len(b.ResourceVersion)), cmp.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	names := make([]string, len(holding))
	for i := range holding {
		names[i] = holding[i].Name
	}
	return names
}

// awaitMany waits until so many Secrets hold a value.
func (s *storeRig) awaitMany(want int, value string) {
	s.Helper()
	ctx, stop := running.WithTimeout(s.Context(), stormPatience)
	defer stop()
	got := 0
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		got = len(s.written(value))
		return got >= want, nil
	})
	if err != nil {
		s.Fatalf("%d of %d Secrets hold %q: %v", got, want, value, context.Cause(ctx))
	}
}

// sampleDepth samples the depth of the operator's queue until the returned function is called, which returns the maximum.
func sampleDepth(t *testing.T) func() int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	most := 0
	var sampling sync.WaitGroup
	sampling.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			depth, err := operatorDepth(ctx)
			if err != nil && ctx.Err() == nil {
				t.Errorf("looking at the operator's queue: %v", err)
				return true, nil
			}
			most = max(most, depth)
			return false, nil
		})
	})
	stop := sync.OnceValue(func() int {
		cancel()
		sampling.Wait()
		return most
	})
	t.Cleanup(func() { stop() })
	return stop
}

// operatorDepth is how many ExternalSecrets wait in the queue of the operator.
func operatorDepth(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+operator.metrics+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := web.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	depth, found := 0, false
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		if !strings.HasPrefix(line, "workqueue_depth{") || !strings.Contains(line, `name="externalsecret"`) {
			continue
		}
		value, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
		if err != nil {
			return 0, err
		}
		depth, found = depth+value, true
	}
	if !found {
		return 0, errors.New("the operator shows no depth of its queue")
	}
	return depth, nil
}
