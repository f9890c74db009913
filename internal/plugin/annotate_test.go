package plugin

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// existing is an object of a kind, with an annotation of someone else.
func existing(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetAnnotations(map[string]string{"other": "stays"})
	return o
}

func TestObjectsOfEachKindAreAnnotated(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), existing("apps/v1", "Deployment", "shop", "web"), existing("v1", "Namespace", "", "shop"))
	refusal := ""
	client.PrependReactor("patch", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource().GroupResource()
		if refusal == "" {
			return false, nil, nil
		}
		err := apierrors.NewForbidden(resource, "web", nil)
		err.ErrStatus.Message = refusal
		return true, nil, err
	})
	const noRight = `deployments.apps "web" is forbidden: User "ada" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`
	text := "load test"
	for _, tt := range []struct {
		name, argument, refusal string
		value                   *string
		want                    map[string]string
		err                     string
	}{
		{name: "a workload", argument: "deployment/web", value: &text, want: map[string]string{"other": "stays", events.AnnotationHold: text}},
		{name: "by the plural and the group", argument: "deployments.apps/web", want: map[string]string{"other": "stays"}},
		{name: "a namespace", argument: "namespace/shop", value: &text, want: map[string]string{"other": "stays", events.AnnotationHold: text}},
		{name: "a kind that is not there", argument: "widget/web", err: "the API server has no kind widget"},
		{name: "no name", argument: "deployment/", err: "want <kind>/<name>"},
		{name: "without the right", argument: "deployment/web", refusal: noRight, err: "no permission to patch deployments.apps in namespace shop"},
		{name: "against an admission policy", argument: "deployment/web", refusal: "this workload is frozen", err: "this workload is frozen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refusal = tt.refusal
			p := New("test")
			p.access.dynamic = client
			a := &annotator{plugin: p, mapper: mapper, namespace: "shop"}
			o, err := a.object(tt.argument)
			if err == nil {
				err = a.annotate(t.Context(), o, events.AnnotationHold, tt.value)
			}
			wantErrorWith(t, err, tt.err)
			if err != nil {
				return
			}
			after, err := o.client.Get(t.Context(), o.name, metav1.GetOptions{})
			testkit.Must(t, err)
			testkit.WantEqual(t, "annotations", tt.want, after.GetAnnotations())
		})
	}
}
