package project

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// webhooked is an API server whose webhook does not answer for widgets other than healthy.
type webhooked struct {
	mu    sync.Mutex
	tried map[string]time.Time
}

func (w *webhooked) RoundTrip(r *http.Request) (*http.Response, error) {
	name := path.Base(r.URL.Path)
	w.mu.Lock()
	if w.tried[name].IsZero() {
		w.tried[name] = time.Now()
	}
	w.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	if name != "healthy" {
		<-time.After(10 * time.Second)
		response.StatusCode = http.StatusInternalServerError
		body = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`)
	}
	response.Body = io.NopCloser(strings.NewReader(string(body)))
	return response, nil
}

func TestResourcesWhoseWebhookDoesNotAnswerDelayNoOthers(t *testing.T) {
	const hanging = 40
	synctest.Test(t, func(t *testing.T) {
		b, server := newBench(t), &webhooked{tried: map[string]time.Time{}}
		client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://api", QPS: -1}, &http.Client{Transport: server})
		must(t, err)
		b.apply.dynamic = client
		b.now = time.Now
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Data: map[string][]byte{"password": []byte("b")}}
		must(t, b.client.Tracker().Add(secret))
		sees := func(name string) key {
			must(t, b.store.Update(widget(name, wantsDB, "a")))
			return key{kind: "widget", namespace: "shop", name: name}
		}
		for i := range hanging {
			k := sees(fmt.Sprintf("hanging%d", i))
			b.item(k).failures = 1
			b.add(k, nil)
		}
		b.add(sees("healthy"), nil)
		began := time.Now()
		var running sync.WaitGroup
		for range workers {
			running.Go(func() { b.run(t.Context()) })
		}
		<-time.After(hanging / maxRetrying * 10 * time.Second)
		b.queue.ShutDown()
		running.Wait()
		if after := server.tried["healthy"].Sub(began); after > time.Second {
			t.Errorf("another resource is written after %v, want at once", after)
		}
		if len(server.tried) != hanging+1 {
			t.Errorf("%d resources were tried, want %d", len(server.tried), hanging+1)
		}
	})
}
