//go:build !race

package actuate_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mountsKey lets the pods read one key of the ConfigMap ca as a file.
func mountsKey(key string) aspect {
	return func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
		name, items := corev1.LocalObjectReference{Name: "ca"}, []corev1.KeyToPath{{Key: key, Path: "ca.pem"}}
		volume := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: name, Items: items}}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "ca", VolumeSource: volume})
		container := &pod.Spec.Containers[0]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "ca", MountPath: "/etc/ca"})
	}
}

// readsOnly lets the pods read these sources as variables, and nothing else.
func readsOnly(sources ...string) aspect {
	return func(object *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
		pod.Spec.Containers[0].Env, pod.Spec.Containers[0].EnvFrom = nil, nil
		reads(sources...)(object, pod)
	}
}

// A controller fills a ConfigMap a moment after it was applied with its readers. No pod has started without the key, and nobody is warned.
func TestPodsThatWaitedForAKeyAreNotReplacedWhenItComes(t *testing.T) {
	const source, key = "configmap/ca", "ca.crt"
	for _, tt := range []struct {
		name  string
		reads aspect
		// had is what the source had and lost before the workload was made, and comes what becomes of it. By default, the key comes.
		had   map[string]string
		comes func(*scene)
		rolls []string
	}{
		{name: "as a file", reads: mountsKey(key)},
		{name: "as a variable", reads: reads(source + "#" + key)},
		{name: "into a source that was emptied", reads: reads(source + "#" + key), had: map[string]string{"other": "1"}},
		{name: "after another one that they need", reads: reads(source+"#"+key, source+"#other"), comes: func(s *scene) {
			s.set(source, "other", "1")
			s.pass(3 * time.Second)
			s.set(source, "other", "2")
			s.pass(3 * time.Second)
			s.set(source, key, "bundle-1")
		}},
		{name: "and another actuator leads before that is recorded", reads: reads(source + "#" + key), comes: func(s *scene) {
			s.set(source, key, "bundle-1")
			s.pass(100 * time.Millisecond)
			s.restart()
		}},
		{name: "unless it changes before that is recorded", reads: reads(source + "#" + key), rolls: []string{"web"}, comes: func(s *scene) {
			s.set(source, key, "bundle-0")
			s.pass(100 * time.Millisecond)
			s.set(source, key, "bundle-1")
		}},
		{name: "unless they can start without it", reads: reads(source + "#" + key + "?"), rolls: []string{"web"}},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.start()
			s.publish(source, map[string]string{})
			for name, value := range tt.had {
				s.set(source, name, value)
				s.unset(source, name)
			}
			s.stall("web")
			s.workload("web", auto, tt.reads)
			s.pass(400 * time.Millisecond)
			if tt.comes == nil {
				s.set(source, key, "bundle-1")
			} else {
				tt.comes(s)
			}
			s.pass(time.Minute)
			s.wantRolls(tt.rolls...)
			s.finish("web")
			s.pass(5 * time.Minute)
			s.wantRolls()
			for _, event := range s.kubernetesEvents() {
				if event.Type == corev1.EventTypeWarning {
					s.Errorf("people are warned: %s", textOf(event))
				}
			}
			s.set(source, key, "bundle-2")
			s.pass(5 * time.Minute)
			s.wantRolls("web")
		})
	}
}

// Running pods may have what it had.
func TestAKeyThatComesBackWithAnotherValueRollsWhoHadIt(t *testing.T) {
	play(t, func(s *scene) {
		s.beginReading("secret/db#password")
		s.unset("secret/db", "password")
		s.pass(time.Minute)
		s.wantNotices("web NotRolled")
		s.set("secret/db", "password", "one")
		s.pass(time.Minute)
		s.wantRolls()
		s.unset("secret/db", "password")
		s.pass(time.Minute)
		s.rotate("two", "web")
	})
}

// A key is missing, and its reader is changed so that its pods start nevertheless.
func TestAKeyThatComesBackRollsWhoHasStartedWithoutIt(t *testing.T) {
	play(t, func(s *scene) {
		s.beginReading("secret/db#password")
		s.unset("secret/db", "password")
		s.pass(time.Minute)
		s.wantNotices("web NotRolled")
		s.edit("web", readsOnly("secret/db#password?"))
		s.pass(2 * time.Minute)
		s.wantRolls()
		s.set("secret/db", "password", "one")
		s.pass(time.Minute)
		s.wantRolls("web")
	})
}

// A release needs a key that nobody has added yet, and is undone once the key has come. The pods from before it stay.
func TestAKeyRollsPodsThatStartedWithoutItBeforeAReleaseThatIsUndone(t *testing.T) {
	play(t, func(s *scene) {
		before := readsOnly("secret/db#password", "secret/db#token?")
		s.workload("web", auto, before)
		s.begin("secret/db")
		s.stall("web")
		s.edit("web", readsOnly("secret/db#password", "secret/db#token"))
		s.pass(time.Minute)
		s.set("secret/db", "token", "one")
		s.pass(time.Minute)
		s.wantRolls()
		s.edit("web", before)
		s.pass(time.Minute)
		s.wantRolls("web")
		s.finish("web")
		s.pass(11 * time.Minute)
		s.wantRolls()
	})
}

// The same release is finished, and its pods are all that is left.
func TestAKeyRollsNobodyOnceAReleaseThatNeedsItHasReplacedThePods(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, readsOnly("secret/db#password", "secret/db#token?"))
		s.begin("secret/db")
		s.stall("web")
		s.edit("web", readsOnly("secret/db#password", "secret/db#token"))
		s.pass(time.Minute)
		s.set("secret/db", "token", "one")
		s.pass(time.Minute)
		s.finish("web")
		s.pass(time.Minute)
		s.restart()
		s.pass(11 * time.Minute)
		s.wantRolls()
		s.set("secret/db", "token", "two")
		s.pass(time.Minute)
		s.wantRolls("web")
	})
}

// What a command writes comes some milliseconds apart.
func TestOneCommandThatChangesASourceAndItsReaderIsOneChange(t *testing.T) {
	const apart = 50 * time.Millisecond
	renames := func(s *scene) { s.publish("secret/db", map[string]string{"DB_PASSWORD": "one", "user": "app"}) }
	readsNew := func(s *scene) { s.edit("web", readsOnly("secret/db#DB_PASSWORD")) }
	changes := func(name string) func(*scene) { return func(s *scene) { s.set(name, "password", "two") } }
	release := func(s *scene) { s.edit("web", image("example.com/app:2")) }
	for _, tt := range []struct {
		name   string
		reads  []string
		writes []func(*scene)
		rolls  []string
	}{
		{name: "a key is renamed, and then its reader reads it", reads: []string{"secret/db#password"}, writes: []func(*scene){renames, readsNew}},
		{name: "the reader reads another key, and then that is renamed", reads: []string{"secret/db#password"}, writes: []func(*scene){readsNew, renames}},
		{name: "a key is removed, and then nobody needs it any more", reads: []string{"secret/db#password", "secret/db#user"}, writes: []func(*scene){
			func(s *scene) { s.unset("secret/db", "password") },
			func(s *scene) { s.edit("web", readsOnly("secret/db#user")) },
		}},
		{name: "a source changes before its reader", reads: []string{"secret/db"}, writes: []func(*scene){changes("secret/db"), release}},
		{
			name:  "three sources change before their reader, and one has a renamed key",
			reads: []string{"secret/db#password", "secret/other", "configmap/app"},
			writes: []func(*scene){
				changes("configmap/app"), renames, changes("secret/other"),
				func(s *scene) { s.edit("web", readsOnly("secret/db#DB_PASSWORD", "secret/other", "configmap/app")) },
			},
		},
		{
			name: "a source is deleted and made anew with a renamed key, before its reader", reads: []string{"secret/db#password"},
			writes: []func(*scene){func(s *scene) { s.erase("secret/db") }, renames, readsNew},
		},
		{
			name: "a source changes after its reader, whose pods may have started in between", reads: []string{"secret/db"},
			writes: []func(*scene){release, changes("secret/db")}, rolls: []string{"web"},
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.workload("web", auto, reads(tt.reads...))
			s.begin("secret/db", "secret/other", "configmap/app")
			s.stall("web") // Its new pods take a while.
			for _, write := range tt.writes {
				write(s)
				s.pass(apart)
			}
			s.pass(10 * time.Second)
			s.finish("web")
			s.pass(5 * time.Minute)
			s.wantRolls(tt.rolls...)
			for _, outcome := range s.outcomesOf("web") {
				if slices.Contains([]string{"key-missing", "source-deleted"}, outcome.Reason) {
					s.Errorf("it is told: %s %s: %s", outcome.Verb, outcome.Reason, outcome.Message)
				}
			}
		})
	}
}
