package tests

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testbed"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

// issued returns an authority, a certificate of it with a keystore, and one that is temporary for as long as the authority does not
// answer.
func issued(namespace string) string {
	return manifests.Join(
		manifests.SelfSigned(namespace, "self"),
		manifests.Authority(namespace, "authority", "Issuer", "self"),
		"apiVersion: v1\nkind: Secret\nmetadata: {name: keystore, namespace: "+namespace+"}\nstringData: {password: of-a-test}\n",
		manifests.Certificate{
			Namespace: namespace, Name: "web", Issuer: "authority",
			Spec: "dnsNames: [web.test]\n  keystores: {pkcs12: {create: true, passwordSecretRef: {name: keystore, key: password}}}",
		}.YAML(),
		manifests.Certificate{
			Namespace: namespace, Name: "early", Issuer: "authority",
			Annotations: `{cert-manager.io/issue-temporary-certificate: "true"}`,
		}.YAML(),
	)
}

var (
	certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	issuers      = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "issuers"}
)

// certificateRig is a rig with cert-manager.
type certificateRig struct {
	*rig
	custom dynamic.Interface
}

func TestACertificateRollsItsUsersOnceWhenItIsIssuedAnewAndForNothingElse(t *testing.T) {
	t.Parallel()
	manager, err := plane.StartCertManager(t.Context())
	testkit.Must(t, err)
	manager.StopAfter(t)
	c := &certificateRig{custom: dynamic.NewForConfigOrDie(plane.Config()), rig: newRig(t, programs.Options{
		// cert-manager, which reads from a cache, sometimes issues a certificate again a moment after it was asked once.
		WatcherArgs: []string{"--sources", "secret,configmap,certificate"}, ActuatorArgs: []string{"--settle", "1s"},
	})}
	testkit.Must(t, plane.ApplyKinds(t.Context(), testbed.RBACKinds(), secretStoreRights...))
	testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(issued(c.namespace))))
	for _, name := range []string{"web", "early"} {
		c.awaitRevision(name, 1)
		c.create(workload{name: name, on: "auto", read: readsAll(events.KindSecret, name)})
	}
	// As a Java program does, which reads nothing of the Secret but its keystore.
	c.create(workload{name: "jvm", on: "auto", read: readsKey(events.KindSecret, "web", "keystore.p12")})
	c.placeFence()
	c.start()

	c.sub("a renewal", func(r *rig) {
		c := &certificateRig{r, c.custom}
		before := c.holder("web")
		c.rolls("a renewal", once("statefulset/web", "statefulset/jvm"), func() {
			c.renew("web")
			c.awaitRevision("web", 2)
		})
		if bytes.Equal(before.Data["tls.crt"], c.holder("web").Data["tls.crt"]) {
			c.Error("the certificate is the one that was there before")
		}
		const want = "secret/web (keystore.p12, tls.crt, tls.key, truststore.p12) by certificate/web"
		if cause := c.templateCause("web"); cause != want {
			c.Errorf("cause on the pod template: got %q, want %q", cause, want)
		}
	})
	c.sub("a keystore that is written anew", func(r *rig) {
		c := &certificateRig{r, c.custom}
		c.rollsNothing("a keystore that is written anew", func() { c.rewriteKeystore("shop") })
	})
	c.sub("a new password of the keystore", func(r *rig) {
		c := &certificateRig{r, c.custom}
		c.rollsNothing("a new password that is not used yet", func() { c.set(events.KindSecret, "keystore", "password", "of-a-later-test") })
		c.rolls("the keystore with the new password", once("statefulset/web", "statefulset/jvm"), func() { c.rewriteKeystore("office") })
	})
	c.sub("a temporary certificate", func(r *rig) {
		c := &certificateRig{r, c.custom}
		c.patchCustom(issuers, "authority", `{"spec":{"ca":{"secretName":"missing"}}}`)
		c.eventually("the issuer does not answer", func(ctx context.Context) bool {
			issuer, err := c.custom.Resource(issuers).Namespace(c.namespace).Get(ctx, "authority", metav1.GetOptions{})
			return err == nil && conditionOf(issuer, "Ready") == "False"
		})
		real := c.holder("early")
		isOther := func() bool {
			now := c.holder("early")
			return now != nil && now.UID != real.UID && len(now.Data["tls.crt"]) > 0
		}
		c.rollsNothing("a temporary certificate", func() {
			c.remove(events.KindSecret, "early")
			c.eventually("there is a certificate again", func(context.Context) bool { return isOther() })
			if name := c.holder("early").Annotations["cert-manager.io/issuer-name"]; name != "" {
				c.Fatalf("the certificate is not temporary: it is of %s", name)
			}
		})
		c.rolls("the real certificate", once("statefulset/early"), func() {
			c.patchCustom(issuers, "authority", `{"spec":{"ca":{"secretName":"authority"}}}`)
			c.awaitRevision("early", 2)
		})
	})
}

// holder returns the Secret of a certificate, or nil.
func (c *certificateRig) holder(name string) *corev1.Secret {
	c.Helper()
	secret, err := c.client.CoreV1().Secrets(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	testkit.Must(c, err)
	return secret
}

func (c *certificateRig) certificate(name string) *unstructured.Unstructured {
	c.Helper()
	certificate, err := c.custom.Resource(certificates).Namespace(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
	testkit.Must(c, err)
	return certificate
}

// awaitRevision waits until a certificate has a revision, or a later one, and no issuance is in progress.
func (c *certificateRig) awaitRevision(name string, want int64) {
	c.Helper()
	c.eventually("the certificate "+name+" was issued", func(context.Context) bool {
		certificate := c.certificate(name)
		revision, _, _ := unstructured.NestedInt64(certificate.Object, "status", "revision")
		return revision >= want && conditionOf(certificate, "Ready") == "True" && conditionOf(certificate, "Issuing") == ""
	})
}

// renew does what cmctl renew does.
func (c *certificateRig) renew(name string) {
	c.Helper()
	c.eventually("the certificate "+name+" is to be renewed", func(ctx context.Context) bool {
		certificate := c.certificate(name)
		conditions, _, err := unstructured.NestedSlice(certificate.Object, "status", "conditions")
		testkit.Must(c, err)
		conditions = append(conditions, map[string]any{
			"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "Certificate re-issuance manually triggered",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": certificate.GetGeneration(),
		})
		testkit.Must(c, unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions"))
		_, err = c.custom.Resource(certificates).Namespace(c.namespace).UpdateStatus(ctx, certificate, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			c.Fatal(err)
		}
		return err == nil
	})
}

// rewriteKeystore has cert-manager write the keystore of web anew, for a label of its Secret, and not the certificate.
func (c *certificateRig) rewriteKeystore(team string) {
	c.Helper()
	before := c.holder("web")
	c.patchCustom(certificates, "web", `{"spec":{"secretTemplate":{"labels":{"team":"`+team+`"}}}}`)
	c.eventually("the keystore is another", func(context.Context) bool {
		return !bytes.Equal(before.Data["keystore.p12"], c.holder("web").Data["keystore.p12"])
	})
	if !bytes.Equal(before.Data["tls.crt"], c.holder("web").Data["tls.crt"]) {
		c.Error("the certificate is another: nothing was shown of the keystore alone")
	}
}

func (c *certificateRig) patchCustom(resource schema.GroupVersionResource, name, patch string) {
	c.Helper()
	_, err := c.custom.Resource(resource).Namespace(c.namespace).Patch(c.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	testkit.Must(c, err)
}
