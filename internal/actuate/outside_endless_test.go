//go:build !race

package actuate_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// mountsClass lets the pods mount what the Secrets Store CSI driver has of a SecretProviderClass.
func mountsClass(name string) aspect {
	return func(_ *metav1.ObjectMeta, pod *corev1.PodTemplateSpec) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "store", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: "secrets-store.csi.k8s.io", VolumeAttributes: map[string]string{"secretProviderClass": name},
		}}})
	}
}

// ofClass says of an event that it is about a SecretProviderClass, whose keys are not listed.
func ofClass(change *events.Change) { change.Keys, change.Changed, change.Truncated = nil, nil, true }

// writtenBy says of an event who has written the source.
func writtenBy(managers ...string) func(*events.Change) {
	return func(change *events.Change) { change.Writers = managers }
}

// endless changes a key of secret/db until web is rolled for that ever more seldom, and waits for the next roll.
func (s *scene) endless(key string, how ...func(*events.Change)) {
	s.Helper()
	for i := range 14 {
		s.set("secret/db", key, strconv.Itoa(i), how...)
		s.pass(30 * time.Second)
	}
	if rolls := len(s.whoRolled()); rolls != 13 {
		s.Errorf("it is rolled %d times, want 13", rolls)
	}
	s.wantLast("web", "held rolled-too-often", "secret/db ("+key+")")
}

func TestWhatChangesForEverRollsAWorkloadEverMoreSeldomAndNeverStops(t *testing.T) {
	const class = "secretproviderclass/app"
	password := func(s *scene, i, _ int) { s.set("secret/db", "password", strconv.Itoa(i)) }
	for _, tt := range []struct {
		name string
		// limit is --max-rolls-per-hour, and web what is special about the workload. Each may be left out.
		limit         int
		web           aspect
		every, during time.Duration
		// changes makes a change, given how often that was done, and how often the workload was rolled.
		changes func(s *scene, i, rolls int)
		// last are the sources whose last content the workload must have in the end.
		last        []string
		least, most int
	}{
		{
			name: "a key every two minutes", every: 2 * time.Minute, during: 24 * time.Hour, last: []string{"secret/db"}, least: 24, most: 40,
			changes: password,
		},
		{
			name: "a key that differs each time", every: 5 * time.Minute, during: 6 * time.Hour, last: []string{"configmap/app"}, least: 6, most: 31,
			changes: func(s *scene, i, _ int) { s.set("configmap/app", strconv.Itoa(i), "seen") },
		},
		{
			name: "two sources by turns", every: time.Minute, during: 6 * time.Hour, last: []string{"secret/db", "configmap/app"}, least: 6, most: 36,
			changes: func(s *scene, i, _ int) {
				s.set([]string{"secret/db", "configmap/app"}[i%2], "password", strconv.Itoa(i))
			},
		},
		{
			name: "what the workload changes after each roll", every: 30 * time.Second, during: 6 * time.Hour, last: []string{"secret/db"}, least: 6, most: 22,
			changes: func(s *scene, _, rolls int) {
				if value := strconv.Itoa(rolls); s.of("secret/db").data["password"] != value {
					s.set("secret/db", "password", value)
				}
			},
		},
		{
			name: "a class whose provider reports another version each time", web: mountsClass("app"), every: 27 * time.Second, during: 4 * time.Hour,
			changes: func(s *scene, i, _ int) { s.set(class, "config.yaml", strconv.Itoa(i), ofClass) }, last: []string{class}, least: 7, most: 10,
		},
		{
			name: "a key, up to a limit of its rolls", limit: 10, every: 20 * time.Second, during: 3 * time.Hour, last: []string{"secret/db"},
			changes: password, least: 30, most: 30,
		},
		{
			name: "a key, once in each interval", web: annotated(workload.AnnotationMinInterval, "2m"), every: 5 * time.Second, during: 10 * time.Minute,
			changes: password, last: []string{"secret/db"}, least: 5, most: 6,
		},
	} {
		playOf(t, tt.name, func(s *scene) {
			aspects := reading("secret/db", reads("configmap/app"))
			if tt.web != nil {
				aspects = append(aspects, tt.web)
			}
			if tt.limit > 0 {
				s.options.MaxRollsPerHour = tt.limit
			}
			s.workload("web", aspects...)
			s.find(class, map[string]string{"config.yaml": "first"}, ofClass)
			s.begin("secret/db", "configmap/app")
			rolls := 0
			for i := range int(tt.during / tt.every) {
				if i%50 == 49 {
					s.restart()
				}
				tt.changes(s, i, rolls)
				s.pass(tt.every)
				rolls += len(s.whoRolled())
			}
			if rolls < tt.least || rolls > tt.most {
				s.Errorf("it is rolled %d times in %s, want %d to %d", rolls, tt.during, tt.least, tt.most)
			}
			s.pass(time.Hour)
			for _, source := range tt.last {
				s.wantContent("web", source)
			}
		})
	}
}

func TestPeopleAreToldWhoWritesWhatChangesWithoutEndAndWhatToDo(t *testing.T) {
	play(t, func(s *scene) {
		s.beginWeb()
		s.endless("password", writtenBy("external-secrets", "postgres-operator"))
		s.pass(5 * time.Second)
		told := s.kubernetesEvents()
		isHeld := func(event *corev1.Event) bool { return event.Reason == "RolloutHeld" }
		i := slices.IndexFunc(told, isHeld)
		if i < 0 || slices.ContainsFunc(told[i+1:], isHeld) {
			s.Fatalf("there is no Kubernetes Event, or more than one: %v", told)
		}
		for _, want := range []string{
			"rolled-too-often: ", "secret/db (password), written by external-secrets and postgres-operator",
			"keyturn.dev/ignore-keys", workload.AnnotationMinInterval,
		} {
			if message := told[i].Message; !strings.Contains(message, want) {
				s.Errorf("the Kubernetes Event does not say %q: %s", want, message)
			}
		}
	})
}

func TestWhatIsNotDelayedByWhatChangesWithoutEnd(t *testing.T) {
	for _, tt := range []struct {
		name  string
		then  func(*scene)
		rolls []string
	}{
		{name: "nothing but another change of that", then: func(s *scene) { s.set("secret/db", "ttl", "next") }},
		{name: "a change of another key, which that follows at once", rolls: []string{"web"}, then: func(s *scene) {
			s.set("secret/db", "password", "two")
			s.set("secret/db", "ttl", "next")
		}},
		{name: "what somebody asks for", rolls: []string{"web"}, then: func(s *scene) { s.edit("web", annotated(workload.AnnotationRollNow, "1")) }},
	} {
		playOf(t, tt.name, func(s *scene) {
			s.beginReading("secret/db", "configmap/app")
			s.endless("ttl")
			tt.then(s)
			s.settle()
			s.wantRolls(tt.rolls...)
		})
	}
}

// No higher wave waits for what is rolled once an hour.
func TestNoWaveWaitsForWhatChangesWithoutEnd(t *testing.T) {
	play(t, func(s *scene) {
		s.workload("web", auto, inWave(-1), reads("secret/db#user"))
		s.begin("secret/db")
		s.endless("user")
		s.workload("api", auto, reads("secret/db"))
		s.pass(2 * time.Minute)
		s.soFar()
		s.set("secret/db", "user", "next")
		s.pass(10 * time.Second)
		s.wantRolls("api")
	})
}
