package templates

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestWhatIsDeletedAfterItWasListedIsNotWaitedFor(t *testing.T) {
	web := func(version string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: version}}
	}
	c := &Counter{client: fake.NewClientset(web("7")), namespace: "shop", seen: make(map[string]state), gone: make(map[string]uint64)}
	c.see(web("6"))
	c.forget(web("8"))
	if writes, err := c.Writes(t.Context()); err != nil || len(writes) > 0 {
		t.Errorf("got %v, %v, want nothing", writes, err)
	}
}
