package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

func TestAllWorkloadsOfTheNamespaceThatAreOnHoldAreFound(t *testing.T) {
	deployment := func(namespace, name, hold string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{events.AnnotationHold: hold},
		}}
	}
	deny := func(resource string) k8stesting.ReactionFunc {
		return func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
		}
	}
	p := New("dev")
	root := p.Command()
	rollouts := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	typed := fake.NewClientset(deployment("shop", "held", "load test"), deployment("shop", "empty", " "), deployment("bank", "other", "x"))
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{rollouts: "RolloutList"})
	// If Argo Rollouts is not installed, few users may list its resources.
	dynamic.PrependReactor("list", "rollouts", deny("rollouts"))
	lists := 0 // of StatefulSets, of which the second page cannot be read: none of that kind may be released
	typed.PrependReactor("list", "statefulsets", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if lists++; lists > 1 {
			return deny("statefulsets")(action)
		}
		one := appsv1.StatefulSet{ObjectMeta: deployment("shop", "first", "load test").ObjectMeta}
		return true, &appsv1.StatefulSetList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []appsv1.StatefulSet{one}}, nil
	})
	p.access.typed, p.access.dynamic = typed, dynamic
	cmd, _, err := root.Find([]string{"release"})
	testkit.Must(t, err)
	var out, errOut bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	a := &annotator{namespace: "shop", plugin: p, cmd: cmd, prepared: true, unprepared: errors.New("no installation")}
	held, err := a.held(t.Context())
	testkit.Must(t, err)
	testkit.WantEqual(t, "workloads on hold", []string{"deployments/held"}, held)
	for _, want := range []string{"Custom resources are left out", "Left out: rollouts.argoproj.io, no permission to list rollouts.argoproj.io in namespace shop"} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("it does not say %q: %s", want, &errOut)
		}
	}
	a.namespace = "empty"
	if held, err := a.held(t.Context()); err != nil || len(held) > 0 || out.String() != "No workload is on hold in namespace empty.\n" {
		t.Errorf("got %v, %v, %q", held, err, &out)
	}
	typed.PrependReactor("list", "*", deny("all"))
	if held, err := a.held(t.Context()); err == nil || !strings.Contains(err.Error(), "no permission to list deployments") {
		t.Errorf("nothing may be listed: got %v, %v", held, err)
	}
}

func TestAHoldOfOthersIsReplacedOnlyIfAsked(t *testing.T) {
	held := func(args ...string) (string, error) {
		var out, errOut bytes.Buffer
		a := annotatingShop(t, &out, &errOut)
		web, err := a.object("deployment/web")
		testkit.Must(t, err)
		others := "load test, until Ada ends it"
		testkit.Must(t, a.annotate(t.Context(), web, events.AnnotationHold, &others))
		err = a.hold(t.Context(), web, args[0], len(args) > 1)
		after, _ := web.hold(t.Context())
		return out.String() + after, err
	}
	got, err := held("mine")
	wantErrorWith(t, err, "deployment/web is on hold already: load test, until Ada ends it; give --overwrite to replace that")
	if got != "load test, until Ada ends it" {
		t.Errorf("got %q", got)
	}
	got, err = held("load test, until Ada ends it")
	if err != nil || got != "deployment/web: held, until it is released: load test, until Ada ends it\nload test, until Ada ends it" {
		t.Errorf("the same text: got %q, %v", got, err)
	}
	got, err = held("mine", "--overwrite")
	if err != nil || got != "deployment/web: held, until it is released: mine, instead of: load test, until Ada ends it\nmine" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWhatMeansNothingIsRefused(t *testing.T) {
	for _, tt := range []struct {
		object, hold, roll string
		settings           bool
	}{
		{object: "deployment/web", settings: true},
		{object: "secret/db", roll: "secret/db: nothing rolls this kind: deployment,"},
		{object: "service/web", hold: "service/web: a hold of this kind holds nothing: want a namespace, secret or configmap, or what", roll: "nothing rolls this kind"},
		{object: "prometheus/main"}, // It may be.
		{object: "prometheus/main", settings: true, hold: "holds nothing", roll: "nothing rolls this kind"},
	} {
		t.Run(fmt.Sprintf("%s, settings known: %t", tt.object, tt.settings), func(t *testing.T) {
			var out, errOut bytes.Buffer
			a := annotatingShop(t, &out, &errOut)
			if tt.settings {
				a.unprepared = nil
			}
			o, err := a.object(tt.object)
			testkit.Must(t, err)
			wantErrorWith(t, a.checkHold(t.Context(), o), tt.hold)
			wantErrorWith(t, a.checkRolled(t.Context(), o, "nothing rolls this kind"), tt.roll)
		})
	}
}
