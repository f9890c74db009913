//go:build !race

package actuate_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// switching is a play: secret/db of the namespaces changes at rest, with the options and workloads of before. Then an actuator with those of after
// takes over.
func switching(before, after func(*scene)) func(*scene) {
	return func(s *scene) {
		before(s)
		s.begin("secret/db", "office/secret/db")
		s.set("secret/db", "password", "two")
		s.set("office/secret/db", "password", "two")
		s.rest()
		after(s)
		s.restartFor(11 * time.Minute)
	}
}

// What a workload begins to want by an option has changed before it did.
func TestLedgerAnOptionThatAddsWorkloadsRollsNone(t *testing.T) {
	testFixtures(t, []fixture{
		{
			name: "a workload that --roll-all adds is not rolled for what changed before",
			play: switching(func(s *scene) { s.workload("web", reads("secret/db")) }, func(s *scene) { s.options.RollAll = true }),
		},
		{
			name: "a workload of a kind that is no longer ignored is not rolled for what changed before",
			play: switching(func(s *scene) {
				s.options.IgnoreWorkloadKinds = []string{"statefulsets"}
				s.workload("statefulset/db", auto, reads("secret/db"))
			}, func(s *scene) { s.options.IgnoreWorkloadKinds = nil }),
		},
		{
			name: "a workload of a namespace that is added is not rolled for what changed before",
			play: switching(func(s *scene) {
				s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "office"}})
				s.options.Namespaces = []string{namespace}
				s.workload("office/web", auto, reads("secret/db"))
			}, func(s *scene) { s.options.Namespaces = []string{namespace, "office"} }),
		},
		{
			name: "a Rollout of Argo Rollouts, once its kind is on, is not rolled for what changed before",
			play: switching(func(s *scene) {
				s.serveRollout(nil)
				s.options.ArgoRollouts = false
			}, func(s *scene) { s.options.ArgoRollouts = true }),
		},
		{
			name: "a Job, once Jobs are recreated, is not recreated for what changed before",
			play: switching(func(s *scene) { s.job("import", auto, reads("secret/db")) }, func(s *scene) { s.options.RecreateJobs = true }),
		},
		{
			name: "a CronJob, once Jobs are started, starts none for what changed before",
			play: func(s *scene) {
				switching(func(s *scene) { s.workload("cronjob/report", auto, reads("secret/db")) }, func(s *scene) { s.options.StartCronJobs = true })(s)
				s.wantJobs()
			},
		},
		{
			name: "a workload that a grant lets read a store is not rolled for what changed there before",
			play: func(s *scene) {
				granted := s.options.StoreAccess
				s.options.StoreAccess = ""
				s.workload("web", on("openbao:secret/shop/db"))
				s.start()
				s.rotateInStore("demo", "secret/shop/db", 1)
				s.pass(time.Minute)
				s.rotateInStore("demo", "secret/shop/db", 2)
				s.rest()
				s.options.StoreAccess = granted
				s.restartFor(11 * time.Minute)
			},
		},
		{
			name: "a workload that --roll-all has added is rolled for the next change",
			play: switching(func(s *scene) { s.workload("web", reads("secret/db")) }, func(s *scene) {
				s.options.RollAll = true
				s.restartFor(time.Minute)
				s.set("secret/db", "password", "three")
				s.pass(time.Minute)
			}),
			want: rolled("web"),
		},
	})
}

// The decisions of a leader at rest are on the workloads.
func TestLedgerANewLeaderAtRestWritesAndTellsNothing(t *testing.T) {
	everyKind := func(s *scene) {
		s.workload("web", auto, reads("secret/db"))
		s.workload("silent", reads("secret/db"))
		s.workload("statefulset/db", auto, reads("secret/db#password"))
		s.workload("daemonset/agent", auto, reads("secret/db", "configmap/app?"))
		s.workload("cronjob/report", auto, reads("secret/db"))
		s.workload("named", on("secret/d*, openbao:secret/shop/db"))
		s.atRest("secret/db")
	}
	testFixtures(t, []fixture{
		{
			name: "after the first records",
			play: func(s *scene) {
				everyKind(s)
				s.restartFor(time.Hour)
				s.wantNotices()
			},
			want: ends{quiet: true},
		},
		{
			name: "after rolls for Secrets, for what appeared, and for a store",
			play: func(s *scene) {
				everyKind(s)
				s.set("secret/db", "password", "two")
				s.appear("configmap/app")
				s.rotateInStore("demo", "secret/shop/db", 1)
				s.rest()
				s.restartFor(time.Hour)
				s.wantNotices()
			},
			want: ends{quiet: true},
		},
		{
			name: "after rolls of a Rollout, of a Job that is recreated, and of a CronJob that starts one",
			play: func(s *scene) {
				serveHealthy(s)
				s.options.RecreateJobs, s.options.StartCronJobs = true, true
				s.job("import", auto, reads("secret/db"))
				s.workload("cronjob/report", auto, reads("secret/db"))
				s.change("cronjob/report", func(object runtime.Object) {
					if report, ok := object.(*batchv1.CronJob); ok {
						report.Spec.Suspend = new(false) // The API server sets it.
					}
				})
				s.begin("secret/db")
				s.set("secret/db", "password", "two")
				s.rest()
				s.restartFor(11 * time.Minute)
				s.wantNotices()
			},
			want: ends{quiet: true},
		},
	})
}
