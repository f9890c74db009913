package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// Revision is one version of an object, as etcd has stored it.
type Revision struct {
	// Name is the name of the object.
	Name string
	// Version is what the API server returns as its resourceVersion.
	Version int64
	// Object is the object, without its resourceVersion. It is nil if the object was deleted.
	Object runtime.Object
}

// ErrCompacted is returned if etcd has dropped revisions that were not read yet. The API server compacts etcd after five minutes.
var ErrCompacted = errors.New("revisions were compacted")

// reconnectDelay is the pause before a new request to etcd.
const reconnectDelay = 100 * time.Millisecond

// Revisions calls fn for every stored version of every object of a resource in a namespace since a resourceVersion, in order, until ctx is
// done or fn returns an error. It reads them from etcd, and so misses none while the API server or etcd itself is down; a watch of the API
// server that starts again only shows the current state. The resource is the plural of a built-in kind.
func (cp *ControlPlane) Revisions(ctx context.Context, resource, namespace string, since int64, fn func(Revision) error) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	next := since + 1
	for {
		err := cp.watchEtcd(ctx, client, registryPrefix(resource, namespace), next, func(revision Revision) error {
			next = revision.Version + 1
			return fn(revision)
		})
		var broken *connectionError
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of the watch, as asked
		case !errors.As(err, &broken):
			return fmt.Errorf("watch %s in etcd: %w", resource, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconnectDelay):
		}
	}
}

func registryPrefix(resource, namespace string) string {
	return "/registry/" + resource + "/" + namespace + "/"
}

// connectionError means that etcd cannot be reached, or that the connection was lost.
type connectionError struct{ err error }

func (e *connectionError) Error() string { return e.err.Error() }

// watchEtcd reads one watch of etcd's JSON gateway.
func (cp *ControlPlane) watchEtcd(ctx context.Context, client *http.Client, prefix string, from int64, fn func(Revision) error) error {
	response, err := cp.askEtcd(ctx, client, "/v3/watch", map[string]any{"create_request": map[string]any{
		"key": []byte(prefix), "range_end": prefixEnd(prefix), "start_revision": from,
	}})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answers := json.NewDecoder(response.Body)
	for {
		var answer watchAnswer
		if err := answers.Decode(&answer); err != nil {
			return &connectionError{err}
		}
		switch {
		case answer.Result.CompactRevision != 0:
			return ErrCompacted
		case answer.Result.Canceled || len(answer.Error) > 0:
			return &connectionError{fmt.Errorf("etcd ended the watch: %s", answer.Error)}
		}
		for _, event := range answer.Result.Events {
			revision, err := event.revision(prefix)
			if err != nil {
				return err
			}
			if err := fn(revision); err != nil {
				return err
			}
		}
	}
}

// NewestRevision returns the resourceVersion of the last written object of a resource in a namespace, or 0 if there is none.
func (cp *ControlPlane) NewestRevision(ctx context.Context, resource, namespace string) (int64, error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	prefix := registryPrefix(resource, namespace)
	response, err := cp.askEtcd(ctx, client, "/v3/kv/range", map[string]any{
		"key": []byte(prefix), "range_end": prefixEnd(prefix), "sort_target": "MOD", "sort_order": "DESCEND", "limit": 1, "keys_only": true,
	})
	if err != nil {
		return 0, fmt.Errorf("read %s in etcd: %w", resource, err)
	}
	defer response.Body.Close()
	var answer struct{ Kvs []keyValue }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, fmt.Errorf("read %s in etcd: %w", resource, err)
	}
	if len(answer.Kvs) == 0 {
		return 0, nil
	}
	return answer.Kvs[0].ModRevision, nil
}

func (cp *ControlPlane) askEtcd(ctx context.Context, client *http.Client, path string, body any) (*http.Response, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, cp.etcdURL()+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, &connectionError{err}
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, &connectionError{errors.New("etcd answers " + response.Status)}
	}
	return response, nil
}

// prefixEnd returns the first key after all keys with a prefix.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}

// watchAnswer is one line of a watch. The gateway writes 64-bit numbers as text, and bytes in base64.
type watchAnswer struct {
	Error  json.RawMessage
	Result struct {
		Canceled        bool
		CompactRevision int64 `json:"compact_revision,string"`
		Events          []watchEvent
	}
}

type watchEvent struct {
	Type string
	KV   keyValue
}

type keyValue struct {
	Key         []byte
	Value       []byte
	ModRevision int64 `json:"mod_revision,string"`
}

func (e watchEvent) revision(prefix string) (Revision, error) {
	revision := Revision{Name: string(bytes.TrimPrefix(e.KV.Key, []byte(prefix))), Version: e.KV.ModRevision}
	if e.Type == "DELETE" {
		return revision, nil
	}
	var err error
	if revision.Object, _, err = scheme.Codecs.UniversalDeserializer().Decode(e.KV.Value, nil, nil); err != nil {
		return Revision{}, fmt.Errorf("decode %s: %w", e.KV.Key, err)
	}
	return revision, nil
}
