package tests

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/vault/api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed/secretstore"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestNothingOfTheAuditFeedButNamesLeaves(t *testing.T) {
	t.Parallel()
	h := &haystack{}
	collector := receiveSpans(t, h)
	s := newStoreRig(t, byHTTP, programs.Options{
		Env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector, "OTEL_METRICS_EXPORTER=otlp", "OTEL_BSP_SCHEDULE_DELAY=100"},
	})
	c := &canaries{rig: s.rig, needles: []needle{{"an HMAC of the store", []byte("hmac-sha256:")}}}
	key, err := os.ReadFile(s.programs.KeyFile())
	testkit.Must(t, err)
	c.watch("the fingerprint key file", "key", key[:len(key)-1])
	c.watch("the store", "root token", []byte(s.store.Token()))
	c.watch("the audit device", "token", []byte(auditToken))
	self, err := s.store.Client().Auth().Token().LookupSelf()
	testkit.Must(t, err)
	accessor, err := self.TokenAccessor()
	testkit.Must(t, err)
	c.watch("the root token", "accessor", []byte(accessor))
	// A name that does get out, to show that the search would find a value.
	decoy := "decoy." + string(secretText(t))
	path := "shop/" + decoy
	s.omitAuthors()
	author := secretText(t)
	c.needles = append(c.needles, needle{"who writes", author})

	c.keepInStore(s, path)
	s.externalSecret("db", path)
	s.reader("web", "db")
	s.startActuator()
	s.listenTo(h)
	s.startWatcher()
	s.feed()
	c.tellInVain(s)
	c.keepInStore(s, path)
	s.awaitVersion(path, "rotated", "update", 2)
	c.causedBy("web", "secret/db (password) by externalsecret/db for bao/root/secret/"+path+"/2")
	testkit.Must(t, s.store.Client().KVv2("secret").Delete(t.Context(), path))
	s.awaitVersion(path, "deleted", "delete", 2)
	c.keepInStore(s, path)
	s.awaitVersion(path, "rotated", "update", 3)
	s.awaitGeneration("web", 3)
	s.writeAs(string(author), "shop/written")
	// Nothing has polled since, so the line of the author's write has been used.
	s.awaitVersion("shop/written", "rotated", "create", 1)
	s.quiet()

	c.collect(h, "web")
	list, err := s.custom.Resource(externalSecrets).Namespace(s.namespace).List(t.Context(), metav1.ListOptions{})
	testkit.Must(t, err)
	h.addJSON(t, "ExternalSecrets", list)
	for _, program := range []*programs.Program{s.watcher, s.actuator} {
		if err := program.Stop(patience); err != nil {
			t.Fatalf("stopping the %s: %v", program.Name(), err)
		}
	}
	addFiles(t, h, s.dir, s.programs.KeyFile())

	if found := h.search(c.needles); len(found) > 0 {
		t.Errorf("%d leaks, of which the first are:\n%s", len(found), strings.Join(found[:min(len(found), 20)], "\n"))
	}
	seen := h.search([]needle{{"a name", []byte(decoy)}})
	for _, way := range []string{
		"stream " + events.StreamChanges, "stream " + events.StreamHistory, "the file watcher-", "the file actuator-", "the file nats/",
		"an OTLP request to /v1/traces", "Deployments", "ExternalSecrets", "a message on keyturn.v1.demo.openbao.",
	} {
		if !slices.ContainsFunc(seen, func(found string) bool { return strings.HasPrefix(found, "a name in "+way) }) {
			t.Errorf("the name of a path was not found in %s: it was not looked at; found only\n%s", way, strings.Join(seen, "\n"))
		}
	}
	t.Logf("looked for %d forms in %d bytes", len(c.needles), h.sizeOf(""))
}

// omitAuthors has the watcher leave out who writes.
func (s *storeRig) omitAuthors() {
	s.Helper()
	config, err := os.ReadFile(s.config)
	testkit.Must(s, err)
	s.write(s.config, strings.Replace(string(config), "\n  poll: ", "\n  omitAuthors: true\n  poll: ", 1))
}

// writeAs writes a secret as a client with a display name, which the store's audit then has.
func (s *storeRig) writeAs(name, path string) {
	s.Helper()
	token, err := s.store.Client().Auth().Token().CreateWithContext(s.Context(), &api.TokenCreateRequest{DisplayName: name, Policies: []string{"root"}})
	testkit.Must(s, err)
	client, err := s.store.Client().Clone()
	testkit.Must(s, err)
	client.SetToken(token.Auth.ClientToken)
	if _, err := client.KVv2("secret").Put(s.Context(), path, map[string]any{"password": "one"}); err != nil {
		s.Fatal(err)
	}
	if secretstore.OpenBao() {
		return // It has no file to look into.
	}
	audited, err := os.ReadFile(s.store.AuditFile("file"))
	testkit.Must(s, err)
	if !strings.Contains(string(audited), `"display_name":"token-`+name+`"`) {
		s.Error("the audit log does not say who writes, so that nothing could have left")
	}
}

// keepInStore writes a secret of values of many kinds, with a key that nobody reads by its name. The store's audit has numbers
// and times as they are, and the HMACs of the others.
func (c *canaries) keepInStore(s *storeRig, path string) {
	c.Helper()
	password, other, unread := secretText(c.T), secretText(c.T), secretText(c.T)
	number, raw := int64(0), secretBytes(c.T, 8)
	for _, b := range raw {
		number = number<<7 | int64(b&0x7f)
	}
	number |= 1 << 58 // of as many digits as there can be
	moment := time.Unix(number%(1<<33), number%1e9).UTC().Format(time.RFC3339Nano)
	data := map[string]any{
		"password": string(password), "number": number, "moment": moment,
		"inner": map[string]any{"list": []string{string(other)}}, "key-" + string(unread): "x",
	}
	c.watch(path, "password", password)
	c.watch(path, "inner", other)
	c.needles = append(c.needles,
		needle{"a key of " + path, unread}, needle{"the time in " + path, []byte(moment)},
		needle{"the number in " + path, []byte(strconv.FormatInt(number, 10))})
	if _, err := s.store.Client().KVv2("secret").Put(c.Context(), path, data); err != nil {
		c.Fatal(err)
	}
}

// tellInVain sends lines with secrets in them that cannot be used, and has the store refuse the watcher.
func (c *canaries) tellInVain(s *storeRig) {
	c.Helper()
	inData, inError, inJunk, inHeader := secretText(c.T), secretText(c.T), secretText(c.T), secretText(c.T)
	for what, value := range map[string][]byte{"data": inData, "error": inError, "junk": inJunk, "header": inHeader} {
		c.watch("a bad line", what, value)
	}
	const version = `{"version":1,"created_time":"2020-01-01T00:00:00Z"}`
	line := lie("secret/data/shop/bad", "update", version)
	text := string(inJunk) + "\n{" + string(inJunk) + "\n" +
		strings.Replace(line, `"operation"`, `"data":{"password":"`+string(inData)+`"},"operation"`, 1) +
		strings.Replace(line, `"type"`, `"error":"`+string(inError)+`","type"`, 1) +
		strings.Replace(line, `"id":"x"`, `"headers":{"traceparent":["`+string(inHeader)+`"],"x":7}`, 1) +
		strings.Replace(line, `"path":"`, `"data":7,"path":"\u0000`+string(inJunk), 1)
	s.postLines(text)
	testkit.Must(c, s.store.Seal(c.Context()))
	s.postLines(lie("secret/data/shop/other", "delete", "null"))
	c.eventually("the watcher cannot read the store", func(context.Context) bool {
		return strings.Contains(s.watcher.Output(), "store cannot be read")
	})
	testkit.Must(c, s.store.Unseal(c.Context()))
}
