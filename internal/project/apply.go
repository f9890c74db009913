package project

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/keyturn/keyturn/internal/kube"
)

type applier struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
	index   *index
}

// project gives a resource the values that it wants. It returns an error only if another attempt may succeed soon. The error quotes no values.
func (a *applier) project(ctx context.Context, t *target) (result, error) {
	switch refusal := t.kind.refusal(t.namespace, t.wishes); {
	case t.problem != "":
		return result{reason: reasonAnnotation, message: "The annotation " + annotation + " " + t.problem + "."}, nil
	case refusal != "":
		return result{reason: reasonNotGiven, message: refusal}, nil
	}
	secrets, r, err := a.read(ctx, t)
	if err != nil || r.reason != reasonNone {
		return r, err
	}
	values := make([]string, 0, len(t.wishes))
	for _, w := range t.wishes {
		value, ok := secrets[w.secret].Data[w.key]
		switch {
		case !ok:
			r.reason, r.message = reasonKeyMissing, fmt.Sprintf("secret/%s has no key %s.", w.secret, w.key)
			return r, nil
		case !utf8.Valid(value):
			r.reason, r.message = reasonNotText, fmt.Sprintf("The key %s of secret/%s is not text.", w.key, w.secret)
			return r, nil
		}
		values = append(values, string(value))
	}
	return a.apply(ctx, t, values, r)
}

// read reads the Secrets of a resource. The result has a reason if one of them is missing or may not be read.
func (a *applier) read(ctx context.Context, t *target) (map[string]*corev1.Secret, result, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.PatchTimeout)
	defer cancel()
	secrets, r := make(map[string]*corev1.Secret), result{versions: make(map[string]string)}
	for _, w := range t.wishes {
		if secrets[w.secret] != nil {
			continue
		}
		secret, err := a.client.CoreV1().Secrets(t.namespace).Get(ctx, w.secret, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			r.reason, r.message = reasonSecretMissing, fmt.Sprintf("secret/%s does not exist.", w.secret)
			return nil, r, nil
		case apierrors.IsForbidden(err):
			r.reason, r.message = reasonForbidden, fmt.Sprintf("The projector may not read secret/%s.", w.secret)
			return nil, r, nil
		case err != nil:
			return nil, r, reduce("reading secret/"+w.secret, err, nil)
		}
		secrets[w.secret], r.versions[w.secret] = secret, secret.ResourceVersion
	}
	return secrets, r, nil
}

// apply applies the values, one for each wish, unless the resource already has exactly these values and the projector owns exactly these fields.
func (a *applier) apply(ctx context.Context, t *target, values []string, r result) (result, error) {
	same := a.index.digests.of(t.wishes, values) == t.state
	missing, dropped := t.differences()
	if same && !missing && !dropped {
		if contested := t.contested(); len(contested) > 0 {
			r.reason, r.message = reasonShared, fmt.Sprintf("Another field manager owns %s, too: the next value will be a conflict. "+
				"Have it give the field up.", strings.Join(contested, ", "))
		}
		return r, nil
	}
	body := &unstructured.Unstructured{Object: map[string]any{}}
	body.SetAPIVersion(t.kind.config.APIVersion)
	body.SetKind(t.kind.config.Kind)
	body.SetName(t.name)
	body.SetNamespace(t.namespace)
	// With the UID, apply neither writes to another object with the same name, nor creates a deleted one.
	body.Object["metadata"].(map[string]any)["uid"] = t.uid
	for i, w := range t.wishes {
		_ = unstructured.SetNestedField(body.Object, values[i], w.names...) // This cannot fail, because the paths do not overlap.
	}
	ctx, cancel := context.WithTimeout(ctx, kube.PatchTimeout)
	defer cancel()
	r.generation = t.generation
	client, options := a.dynamic.Resource(t.kind.resource).Namespace(t.namespace), metav1.ApplyOptions{FieldManager: fieldManager}
	applied, err := client.Apply(ctx, t.name, body, options)
	if err != nil {
		f := reduce("applying", err, t.wishes)
		if r.reason = f.reason(); r.reason == reasonNone {
			return r, f
		}
		r.message = f.explain(r.reason)
		return r, nil
	}
	a.index.wrote(t, applied)
	r.version, r.generation = applied.GetResourceVersion(), applied.GetGeneration()
	lost := notKept(t.wishes, values, applied)
	switch {
	case len(lost) > 0:
		r.reason, r.message = reasonNotKept, fmt.Sprintf("The API server has stored another value in %s than was applied: a webhook alters it. "+
			"Have it leave the field alone, or put into the Secret what it makes of the value.", strings.Join(lost, ", "))
		return r, nil
	case len(t.wishes) == 0 || same && dropped:
		r.reason = reasonReleased
	case same:
		return r, nil // Only the ownership has changed. If another manager owns the fields, too, the resource is queued again.
	default:
		r.reason = reasonApplied
	}
	r.message = explain(r.reason, t)
	return r, nil
}

// notKept returns the paths of fields whose values differ from the applied ones.
func notKept(wishes []wish, values []string, applied *unstructured.Unstructured) []string {
	var list []string
	for i, w := range wishes {
		if text, isText := w.value(applied); !isText || text != values[i] {
			list = append(list, w.path.String())
		}
	}
	return list
}
