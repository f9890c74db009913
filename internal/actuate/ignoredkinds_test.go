package actuate

import (
	"slices"
	"testing"

	k8stesting "k8s.io/client-go/testing"
)

func TestAKindThatIsIgnoredIsNeitherListedNorWatched(t *testing.T) {
	c := newCluster(t)
	options := c.options()
	options.IgnoreWorkloadKinds = []string{"cronjobs", "daemonset"}
	_, stop := c.start(options)
	stop()
	asked := func(resource string) bool {
		return slices.ContainsFunc(c.client.Actions(), func(a k8stesting.Action) bool { return a.GetResource().Resource == resource })
	}
	for resource, want := range map[string]bool{"deployments": true, "statefulsets": true, "daemonsets": false, "cronjobs": false} {
		if got := asked(resource); got != want {
			t.Errorf("%s were listed or watched: %t, want %t", resource, got, want)
		}
	}
}
