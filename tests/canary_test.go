package tests

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
)

// canaries are values that must not leave the watcher, and all that could be seen of them.
type canaries struct {
	*rig
	needles []needle
}

// watch adds the value of a data key to the needles, and everything that contains it.
func (c *canaries) watch(object, key string, value []byte) {
	what := object + "#" + key
	c.needles = append(c.needles, needlesOf(what, value)...)
	c.needles = append(c.needles, needles(what, digestsOf(key, value))...)
}

// data returns the content of an object: new values of many kinds. Each value becomes a needle, and so does its secret part
// alone.
func (c *canaries) data(object string) map[string][]byte {
	c.Helper()
	raw, password, inEnv, inJSON, inAuth := secretBytes(c.T, 32), secretText(c.T), secretText(c.T), secretBytes(c.T, 32), secretText(c.T)
	same := secretText(c.T)
	config, err := json.Marshal(map[string]any{"database": map[string]string{"password": base32.StdEncoding.EncodeToString(inJSON)}})
	testkit.Must(c, err)
	var awkward []byte
	for _, b := range secretBytes(c.T, 24) {
		awkward = append(awkward, "\"\\<>&'\n\t"[b%8])
		awkward = fmt.Appendf(awkward, "%02x", b)
	}
	data := map[string][]byte{
		"raw":      raw,
		"password": password,
		"app.env":  fmt.Appendf(nil, "USER=app\nPASSWORD=%s\nDEBUG=1\n", inEnv),
		"app.json": config,
		"auth":     []byte(base64.StdEncoding.EncodeToString([]byte("app:" + string(inAuth)))),
		"awkward":  awkward,
		"pin":      fmt.Appendf(nil, "%d", 1000+int(raw[0])*8+int(raw[1])%8),
		"same-1":   same,
		"same-2":   same,
	}
	for key, value := range data {
		c.watch(object, key, value)
	}
	c.watch(object, "PASSWORD", inEnv)
	c.watch(object, "database.password", inJSON)
	c.watch(object, "app", inAuth)
	return data
}

// keep writes a Secret with an annotation that holds all of it, as kubectl apply makes one.
func (c *canaries) keep(name string, data map[string][]byte) {
	c.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}, Data: data}
	applied, err := json.Marshal(secret)
	testkit.Must(c, err)
	secret.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: string(applied)}
	secrets := c.client.CoreV1().Secrets(c.namespace)
	if _, err = secrets.Update(c.Context(), secret, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = secrets.Create(c.Context(), secret, metav1.CreateOptions{})
	}
	testkit.Must(c, err)
}

// settings writes a ConfigMap. Its contents are not for everybody either, but the names of its keys are.
func (c *canaries) settings(name, decoy string) {
	c.Helper()
	values := c.data("configmap/" + name)
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Data:       map[string]string{decoy: string(values["password"]), "app.env": string(values["app.env"])},
		BinaryData: map[string][]byte{"raw": values["raw"]},
	}
	configMaps := c.client.CoreV1().ConfigMaps(c.namespace)
	_, err := configMaps.Update(c.Context(), configMap, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(c.Context(), configMap, metav1.CreateOptions{})
	}
	testkit.Must(c, err)
}

func TestValuesNeverLeave(t *testing.T) {
	t.Parallel() // most of it is waiting for a patch that is denied
	h := &haystack{}
	collector := receiveSpans(t, h)
	dir := t.TempDir()
	r := newRig(t, programs.Options{
		Dir: dir, ActuatorArgs: []string{"--settle", "50ms"},
		Env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector, "OTEL_METRICS_EXPORTER=otlp", "OTEL_BSP_SCHEDULE_DELAY=100"},
	})
	c := &canaries{rig: r}
	key, err := os.ReadFile(r.programs.KeyFile())
	testkit.Must(t, err)
	c.watch("the fingerprint key file", "key", bytes.TrimSpace(key))
	// A name that does get out, to show that the search would find a value.
	decoy := "decoy." + string(secretText(t))

	c.keep("canary", c.data("secret/canary"))
	twins := c.data("secret/twin")
	c.keep("twin-a", twins)
	c.keep("twin-b", twins)
	c.keep("frozen", c.data("secret/frozen"))
	c.settings("app", decoy)
	web := r.reading("web", "canary", 1, nil)
	for _, name := range []string{"twin-a", "twin-b", "late"} {
		programs.ReadSecret(&web.Spec.Template, name)
	}
	main := &web.Spec.Template.Spec.Containers[0]
	main.EnvFrom[3].SecretRef.Optional = new(true)
	main.Env = append(main.Env, corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "canary"}, Key: "password",
	}}})
	programs.ReadConfigMap(&web.Spec.Template, "app")
	r.deploy(web)
	r.deploy(r.reading("frozen", "frozen", 1, nil))
	r.deploy(r.reading("typo", "canary", 1, map[string]string{"keyturn.dev/roll-on": "secret/canary, secrt/canary"}))
	r.denyUpdates("frozen")

	r.startActuator()
	r.listenTo(h)
	r.startWatcher()
	// Given up after half a minute, while the rest goes on.
	c.keep("frozen", c.data("secret/frozen"))
	c.changeAll(decoy)
	c.tellBadly()
	r.outcomeOf("frozen", events.VerbFailed)
	r.quiet()

	c.collect(h, "web", "frozen", "typo")
	for _, program := range []*programs.Program{r.watcher, r.actuator} {
		if err := program.Stop(patience); err != nil {
			t.Fatalf("stopping the %s: %v", program.Name(), err)
		}
	}
	addFiles(t, h, dir, r.programs.KeyFile())

	if found := h.search(c.needles); len(found) > 0 {
		t.Errorf("%d leaks, of which the first are:\n%s", len(found), strings.Join(found[:min(len(found), 20)], "\n"))
	}
	// Each way out was searched: it has what is allowed there.
	seen := h.search([]needle{{"a name", []byte(decoy)}})
	for _, way := range []string{
		"a message on keyturn.v1.demo.configmap.", "a message on keyturn.history.v1.demo.configmap.", "stream CHANGES", "stream HISTORY",
		"the file watcher-", "the file actuator-", "the file nats/", "an OTLP request to /v1/traces", "Deployments", "Events",
	} {
		if !slices.ContainsFunc(seen, func(found string) bool { return strings.HasPrefix(found, "a name in "+way) }) {
			t.Errorf("the name of a key was not found in %s: it was not looked at; found only\n%s", way, strings.Join(seen, "\n"))
		}
	}
	for _, way := range []string{
		"stream DEADLETTERS", "Leases", "metrics of the watcher", "metrics of the actuator", "an OTLP request to /v1/metrics",
		"explain", "dead-letters",
	} {
		if h.sizeOf(way) == 0 {
			t.Errorf("nothing came out by %s: it was not looked at", way)
		}
	}
	t.Logf("looked for %d forms in %d bytes", len(c.needles), h.sizeOf(""))
}

// changeAll has each source change in each way there is.
func (c *canaries) changeAll(decoy string) {
	c.Helper()
	// Changed.
	c.keep("canary", c.data("secret/canary"))
	c.settings("app", decoy)
	c.outcomeOf("web", events.VerbCompleted)
	c.outcomeOf("typo", events.VerbCompleted)
	// Created.
	c.keep("late", c.data("secret/late"))
	c.causedBy("web", "secret/late")
	// Two of the same content.
	twins := c.data("secret/twin")
	c.keep("twin-a", twins)
	c.keep("twin-b", twins)
	c.causedBy("web", "secret/twin")
	// A key that is missing.
	data := c.data("secret/canary")
	delete(data, "password")
	c.keep("canary", data)
	c.eventually("the key that is missing is reported", func(context.Context) bool { return len(c.kubeEvents("web", "NotRolled")) > 0 })
	// Changed while the watcher is down, and deleted.
	if err := c.watcher.Stop(patience); err != nil {
		c.Fatalf("stopping the watcher: %v", err)
	}
	c.keep("canary", c.data("secret/canary"))
	c.startWatcher()
	c.causedBy("web", "secret/canary")
	for _, name := range []string{"late", "twin-b"} {
		testkit.Must(c, c.client.CoreV1().Secrets(c.namespace).Delete(c.Context(), name, metav1.DeleteOptions{}))
	}
	c.eventually("the deletion is on the stream", func(context.Context) bool {
		return strings.Count(c.watcher.Output(), `"verb":"deleted"`) == 2
	})
	// Last, so that the final state is the one that is searched.
	c.settings("app", decoy)
	c.causedBy("web", "configmap/app")
}

// tellBadly has the actuator refuse an event.
func (c *canaries) tellBadly() {
	c.Helper()
	msg := c.message(c.forge("bad"))
	msg.Data = msg.Data[1:]
	c.publish(msg)
}

// causedBy waits until a Deployment was last rolled for a source.
func (c *canaries) causedBy(deployment, source string) {
	c.Helper()
	c.eventually(deployment+" is rolled for "+source, func(context.Context) bool {
		return strings.Contains(c.deployment(deployment).Spec.Template.Annotations["keyturn.dev/cause"], source)
	})
}
