package tests

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/keyturn/keyturn/tests/programs"
)

// The spans of the chain from a write in the store to the last ready pod, each with the span that it is a part of. That of
// the first is the writer's.
var storeChain = []struct{ name, parent, service string }{
	{"detect openbao", "", "keyturn-watcher"},
	{"publish keyturn.v1.{cluster}.openbao.{namespace}.{name}", "detect openbao", "keyturn-watcher"},
	{"process keyturn.v1.{cluster}.openbao.{namespace}.{name}", "publish keyturn.v1.{cluster}.openbao.{namespace}.{name}", "keyturn-actuator"},
	{"force-sync externalsecret", "process keyturn.v1.{cluster}.openbao.{namespace}.{name}", "keyturn-actuator"},
	{"wait for sync", "process keyturn.v1.{cluster}.openbao.{namespace}.{name}", "keyturn-actuator"},
	{"detect secret", "publish keyturn.v1.{cluster}.openbao.{namespace}.{name}", "keyturn-watcher"},
	{"publish keyturn.v1.{cluster}.secret.{namespace}.{name}", "detect secret", "keyturn-watcher"},
	{"process keyturn.v1.{cluster}.secret.{namespace}.{name}", "publish keyturn.v1.{cluster}.secret.{namespace}.{name}", "keyturn-actuator"},
	{"plan", "process keyturn.v1.{cluster}.secret.{namespace}.{name}", "keyturn-actuator"},
	{"patch deployment", "plan", "keyturn-actuator"},
	{"rollout deployment", "plan", "keyturn-actuator"},
}

func TestOneTraceLeadsFromTheWriteInTheStoreToTheLastReadyPod(t *testing.T) {
	t.Parallel()
	received, endpoint := receiveOTLP(t)
	s := newStoreRig(t, byHTTP, programs.Options{Env: []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_BSP_SCHEDULE_DELAY=100",
	}})
	if err := s.store.AuditTraceparent(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.put("shop/plain", "one")
	s.put("shop/templated", "one")
	s.externalSecret("plain", "shop/plain")
	// The operator copies no annotation of it to the Secret.
	s.apply(`
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: templated, namespace: NAMESPACE}
spec:
  refreshInterval: 1h
  secretStoreRef: {kind: SecretStore, name: bao}
  target: {template: {data: {password: "{{ .password }}"}}}
  data: [{secretKey: password, remoteRef: {key: shop/templated, property: password}}]
`)
	s.awaitContent("templated", "one")
	traces := map[string]string{"plain": "0af7651916cd43dd8448eb211c80319c", "templated": "4bf92f3577b34da6a3ce929d0e0e4736"}
	const writer = "b7ad6b7169203331"
	for name := range traces {
		s.reader(name, name)
	}
	s.start()
	for name, trace := range traces {
		s.putTraced("shop/"+name, "two", "00-"+trace+"-"+writer+"-01")
		s.awaitContent(name, "two")
		s.awaitGeneration(name, 2)
	}
	for name, trace := range traces {
		t.Run(name, func(t *testing.T) {
			var found map[string]*otlp.Span
			own := *s.rig
			own.T = t
			own.eventually("every span of the chain has arrived", func(context.Context) bool {
				found = received.ofTrace(t, trace)
				return !slices.ContainsFunc(storeChain, func(link struct{ name, parent, service string }) bool { return found[link.name] == nil })
			})
			for _, link := range storeChain {
				span := found[link.name]
				parent := writer
				if link.parent != "" {
					parent = hex.EncodeToString(found[link.parent].GetSpanId())
				}
				if got := hex.EncodeToString(span.GetParentSpanId()); got != parent {
					t.Errorf("parent of %s: got %s, want %s, %q", link.name, got, parent, link.parent)
				}
				if got := received.serviceOf(span); got != link.service {
					t.Errorf("service of %s: got %s, want %s", link.name, got, link.service)
				}
			}
			if parent := own.deployment(name).Spec.Template.Annotations["keyturn.dev/traceparent"]; !strings.Contains(parent, trace) {
				t.Errorf("traceparent of the pod template: got %q, want trace %s", parent, trace)
			}
			t.Logf("spans of the trace: %s", strings.Join(slices.Sorted(maps.Keys(found)), ", "))
		})
	}
}

// putTraced is put by a writer that has a trace.
func (s *storeRig) putTraced(path, value, traceparent string) {
	s.Helper()
	client, err := s.store.Client().Clone()
	if err != nil {
		s.Fatal(err)
	}
	client.AddHeader("traceparent", traceparent)
	if _, err := client.KVv2("secret").Put(s.Context(), path, map[string]any{"password": value}); err != nil {
		s.Fatal(err)
	}
}

// ofTrace returns the spans of a trace by name. Each name must occur once.
func (s *spans) ofTrace(t *testing.T, trace string) map[string]*otlp.Span {
	t.Helper()
	found := make(map[string]*otlp.Span)
	for _, span := range s.Spans() {
		if hex.EncodeToString(span.GetTraceId()) != trace {
			continue
		}
		if found[span.GetName()] != nil {
			t.Fatalf("trace %s has more than one span %q", trace, span.GetName())
		}
		found[span.GetName()] = span.Span
	}
	return found
}
