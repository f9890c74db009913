package reloader

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/keyturn/keyturn/tests/programs"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/manifests"
)

// mounts has the pods of a template mount a SecretProviderClass.
func mounts(template *corev1.PodTemplateSpec, class string) {
	yes := true
	template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: "secrets", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: "secrets-store.csi.k8s.io", ReadOnly: &yes, VolumeAttributes: map[string]string{"secretProviderClass": class},
	}}})
	main := &template.Spec.Containers[0]
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "secrets", MountPath: "/secrets"})
}

// driver is what the driver does for one pod. No driver runs.
type driver struct {
	*rig
	status manifests.PodStatus
}

// mount starts a pod into which the first version is mounted.
func (r *rig) mount(pod, class string) *driver {
	r.Helper()
	template := programs.PodTemplate(nil)
	owner, err := r.client.CoreV1().Pods(r.namespace).Create(r.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: template.Spec,
	}, metav1.CreateOptions{})
	testkit.Must(r, err)
	d := &driver{rig: r, status: manifests.PodStatus{Namespace: r.namespace, Pod: pod, Class: class, UID: string(owner.UID)}}
	d.rotate("VERSION-1")
	return d
}

// rotate mounts another version.
func (d *driver) rotate(version string) {
	d.Helper()
	d.status.Version = version
	testkit.Must(d, plane.ApplyYAML(d.Context(), strings.NewReader(d.status.YAML())))
}

func TestWhatTheSecretsStoreDriverMountsRollsAsReloaderRollsIt(t *testing.T) {
	t.Parallel()
	serveRollouts(t)
	serveClasses(t)
	for _, strategy := range []string{"annotations", "env-vars"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for _, class := range []string{"db", "unread", "last"} {
				testkit.Must(t, plane.ApplyYAML(t.Context(), strings.NewReader(manifests.SecretProviderClass(r.namespace, class, "{}"))))
			}
			mountsDB := func(template *corev1.PodTemplateSpec) { mounts(template, "db") }
			excluded := auto()
			excluded["secretproviderclasses.exclude.reloader.stakater.com/reload"] = "db"
			r.deploy("web", auto(), mountsDB)
			r.deploy("last", auto(), func(template *corev1.PodTemplateSpec) { mounts(template, "last") })
			r.deploy("typed", map[string]string{"secretproviderclass.reloader.stakater.com/auto": "true"}, mountsDB)
			r.deploy("named", map[string]string{"secretproviderclass.reloader.stakater.com/reload": "db"}, func(*corev1.PodTemplateSpec) {})
			r.deploy("excluded", excluded, mountsDB)
			r.rollout("canary", rolloutCase{annotations: auto(), read: func(template *corev1.PodTemplateSpec, _ string) { mountsDB(template) }})
			job := r.runJobs(mountsDB)
			pod, unread, last := r.mount("pod", "db"), r.mount("unread", "unread"), r.mount("last", "last")
			r.start("--enable-csi-integration", "--is-Argo-Rollouts", "true", "--reload-strategy", strategy)
			excludedBefore := r.writes("excluded")

			users := []string{"web", "typed", "named"}
			for _, version := range []string{"VERSION-2", "VERSION-3", "VERSION-4"} {
				before := map[string]int64{}
				for _, name := range users {
					before[name] = r.writes(name)
				}
				pod.rotate(version)
				for _, name := range users { // All of them, so that no roll is still to come when there must be none.
					r.awaitRoll(name, before[name])
				}
			}
			check := func(what string, template *corev1.PodTemplateSpec) {
				t.Helper()
				marked, variable := "SECRETPROVIDERCLASS db", ""
				if strategy == "env-vars" {
					marked, variable = "", "main/STAKATER_DB_SECRETPROVIDERCLASS"
				}
				found := variablesOf(template.Spec.Containers)
				if got := r.markedBy(template.Annotations); got != marked || len(found[variable]) != 40 && variable != "" || variable == "" && len(found) > 0 {
					t.Errorf("%s: the marker is %q, want %q; the variables are %v, want %s", what, got, marked, found, variable)
				}
			}
			for _, name := range users {
				check(name, &r.deployment(name).Spec.Template)
			}
			testkit.Await(t, "the Rollout and the Job have the change", func(ctx context.Context) bool {
				canary, err := r.rollouts().Get(ctx, "canary", metav1.GetOptions{})
				testkit.Must(t, err)
				_, uid := r.jobs()
				return canary.GetGeneration() > 1 && uid != "" && uid != job
			})
			canary, err := r.rollouts().Get(t.Context(), "canary", metav1.GetOptions{})
			testkit.Must(t, err)
			template := &corev1.PodTemplateSpec{}
			content, _, _ := unstructured.NestedMap(canary.Object, "spec", "template")
			testkit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, template))
			check("canary", template)
			r.leaves("web", func() {
				r.mount("another", "db")
				unread.rotate("VERSION-2")
				// What is mounted is seen in order, and the sentinels mount nothing.
				r.rolls("last", func() { last.rotate("VERSION-2") })
			})
			if now := r.writes("excluded"); now != excludedBefore {
				t.Errorf("excluded was rolled %d times, want none", now-excludedBefore)
			}
			if strings.Contains(r.program.Output(), "VERSION-") {
				t.Error("the log has a version")
			}
		})
	}
}
