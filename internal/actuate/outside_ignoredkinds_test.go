//go:build !race

package actuate_test

import "testing"

func TestAKindThatIsIgnoredIsNeitherListedNorWatched(t *testing.T) {
	play(t, func(s *scene) {
		s.options.IgnoreWorkloadKinds = []string{"cronjobs", "daemonset"}
		for _, name := range []string{"web", "statefulset/web", "daemonset/web", "cronjob/web"} {
			s.workload(name, auto, reads("secret/db"))
		}
		s.begin("secret/db")
		for resource, want := range map[string]bool{"deployments": true, "statefulsets": true, "daemonsets": false, "cronjobs": false} {
			for _, verb := range []string{"list", "watch"} {
				if got := len(s.requests(verb, resource)) > 0; got != want {
					s.Errorf("there are requests to %s %s: %t, want %t", verb, resource, got, want)
				}
			}
		}
		s.rotate("two", "web", "statefulset/web")
	})
}
