package tests

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

const (
	// stormSize is how many ExternalSecrets read one path. KEYTURN_STORM_SIZE is another number, such as 500.
	stormSize = 200
	// stormPatience is how long the operator may take to sync all of them, one at a time.
	stormPatience = 10 * time.Minute
	// maxSyncs is the default of --max-syncs.
	maxSyncs = 5
)

// TestAStormOfSyncsFloodsNobodyAndHoldsUpNoOther rotates what very many ExternalSecrets read, and in the middle of it what
// another one does.
func TestAStormOfSyncsFloodsNobodyAndHoldsUpNoOther(t *testing.T) {
	size := stormSize
	if text := os.Getenv("KEYTURN_STORM_SIZE"); text != "" {
		var err error
		if size, err = strconv.Atoi(text); err != nil {
			t.Fatalf("KEYTURN_STORM_SIZE: %v", err)
		}
	}
	s := newStoreRig(t, bySocket, programs.Options{})
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
	ahead, written := s.count("two"), time.Now()
	s.put("shop/other", "two")
	waited := s.awaitContent("other", "two").Sub(written)
	overtaken := s.count("two") - 1 - ahead
	s.awaitMany(size, "two")
	took := time.Since(start)
	depth := deepest()
	t.Logf("%d synced in %v, %v each; the other within %v, after %d of them; the operator's queue had at most %d",
		size, took.Round(time.Millisecond), (took / time.Duration(size)).Round(time.Millisecond), waited.Round(time.Millisecond), overtaken, depth)
	// The operator looks at an ExternalSecret again when its Secret has changed.
	if limit := 6 * maxSyncs; depth > limit {
		t.Errorf("the operator's queue had up to %d, want at most %d", depth, limit)
	}
	if limit := 16 * maxSyncs; overtaken > limit {
		t.Errorf("the other waited for %d of the storm, want at most %d", overtaken, limit)
	}
	s.eachRolledOnce(before)
}

// count is how many Secrets hold a value.
func (s *storeRig) count(value string) int {
	s.Helper()
	list, err := s.client.CoreV1().Secrets(s.namespace).List(s.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		s.Fatal(err)
	}
	count := 0
	for i := range list.Items {
		if string(list.Items[i].Data["password"]) == value {
			count++
		}
	}
	return count
}

// awaitMany waits until so many Secrets hold a value.
func (s *storeRig) awaitMany(want int, value string) {
	s.Helper()
	got := 0
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, stormPatience, true, func(context.Context) (bool, error) {
		got = s.count(value)
		return got >= want, nil
	})
	if err != nil {
		s.Fatalf("%d of %d Secrets hold %q: %v", got, want, value, err)
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
