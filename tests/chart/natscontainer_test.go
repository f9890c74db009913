package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/keyturn/keyturn/tests/testkit"
)

// podOfTheActuator is the pod that an object starts.
func podOfTheActuator(t *testing.T, all map[string]object) *corev1.PodSpec {
	t.Helper()
	text, err := yaml.Marshal(all[programs["actuator"]])
	testkit.Must(t, err)
	var set appsv1.StatefulSet
	testkit.Must(t, yaml.UnmarshalStrict(text, &set))
	return &set.Spec.Template.Spec
}

// secretsIn are what a container has from Secrets, by mounts and by variables, and its mount of the account's token.
func secretsIn(pod *corev1.PodSpec, container corev1.Container) []string {
	var all []string
	add := func(name string, items []corev1.KeyToPath) {
		for _, item := range items {
			name += " " + item.Key
		}
		all = append(all, name)
	}
	for _, mount := range container.VolumeMounts {
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if at < 0 {
			continue // It is a claim of the StatefulSet.
		}
		volume := pod.Volumes[at]
		if volume.Secret != nil {
			add(volume.Secret.SecretName, volume.Secret.Items)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				add(source.Secret.Name, source.Secret.Items)
			}
			if source.ServiceAccountToken != nil {
				add("TOKEN at "+mount.MountPath, nil)
			}
		}
	}
	for _, variable := range container.Env {
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil && from.SecretKeyRef.Key != "public" {
			add(from.SecretKeyRef.Name+" "+from.SecretKeyRef.Key, nil)
		}
	}
	for _, from := range container.EnvFrom {
		if from.SecretRef != nil {
			add(from.SecretRef.Name, nil)
		}
	}
	slices.Sort(all)
	return all
}

// The chart makes the same: TestTheChartMakesWhatKustomizeMakes.
func TestWhatParsesTheMessagesOfOthersHasNoToken(t *testing.T) {
	for _, components := range [][]string{
		nil, {"high-availability"}, {"leaf"}, {"ephemeral-storage"}, {"cert-manager"}, {"secret-stores", "openbao-audit"},
	} {
		t.Run("with "+strings.Join(components, " and "), func(t *testing.T) {
			t.Parallel()
			pod := podOfTheActuator(t, kustomized(t, "base", components...))
			if len(pod.InitContainers) != 1 || len(pod.Containers) != 1 || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Fatal("want NATS beside the actuator, and no token for all")
			}
			nats, actuator := pod.InitContainers[0], pod.Containers[0]
			want := []string{"keyturn-nats-env", "keyturn-nats-storage", "keyturn-nats-tls"}
			for component, secret := range map[string]string{"high-availability": "keyturn-nats-routes", "leaf": "keyturn-nats-leaf"} {
				if slices.Contains(components, component) {
					want = append(want, secret)
				}
			}
			slices.Sort(want)
			testkit.WantEqual(t, "secrets of NATS", want, slices.Compact(withoutItems(secretsIn(pod, nats))))
			if diff := cmp.Diff([]string{
				"TOKEN at /var/run/secrets/kubernetes.io/serviceaccount", "keyturn-actuator-env", "keyturn-nats-actuator", "keyturn-nats-reader",
				"keyturn-nats-tls ca.crt",
			}, secretsIn(pod, actuator)); diff != "" {
				t.Errorf("secrets of the actuator (-want +got):\n%s", diff)
			}
			for _, mount := range actuator.VolumeMounts {
				if mount.Name == "data" || mount.Name == "nats-config" {
					t.Errorf("the actuator mounts %s", mount.Name)
				}
			}
			if words := fmt.Sprint(actuator.Args, actuator.Env); strings.Contains(words, "--nats-store-dir") || strings.Contains(words, "NATS_TLS_KEY") {
				t.Errorf("the actuator has settings of a server: %s", words)
			}
			if diff := cmp.Diff(actuator.SecurityContext, nats.SecurityContext); diff != "" {
				t.Errorf("what confines them (-actuator +nats):\n%s", diff)
			}
			if pod.ShareProcessNamespace != nil || pod.HostPID || pod.HostNetwork {
				t.Error("the containers share more than the network of their pod")
			}
		})
	}
}

// withoutItems are names of Secrets without the keys that are mounted.
func withoutItems(secrets []string) []string {
	names := make([]string, len(secrets))
	for i, secret := range secrets {
		names[i], _, _ = strings.Cut(secret, " ")
	}
	return names
}

// New streams would not be encrypted, and could not be later, if NATS started before there is their key.
func TestThePodWaitsForTheKeyOfItsStreams(t *testing.T) {
	for where, all := range map[string]map[string]object{
		"kustomize":                       kustomized(t, "base"),
		"the chart with keys of your own": rendered(t, "{keys: {create: false}, nats: {certificate: existing}}"),
	} {
		volumes := podOfTheActuator(t, all).Volumes
		at := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "nats-storage" })
		if at < 0 || volumes[at].Secret == nil || volumes[at].Secret.Optional != nil && *volumes[at].Secret.Optional {
			t.Errorf("%s: the pod does not wait for the Secret", where)
		}
	}
}

func TestNATSStartsBeforeTheActuatorAndEndsAfterIt(t *testing.T) {
	pod := podOfTheActuator(t, kustomized(t, "base"))
	nats := pod.InitContainers[0]
	if nats.RestartPolicy == nil || *nats.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("NATS is no sidecar")
	}
	names := map[string]bool{}
	ports := map[int32]bool{}
	for _, container := range []corev1.Container{nats, pod.Containers[0]} {
		for _, port := range container.Ports {
			if names[port.Name] || ports[port.ContainerPort] {
				t.Errorf("port %s %d is there twice", port.Name, port.ContainerPort)
			}
			names[port.Name], ports[port.ContainerPort] = true, true
		}
		if container.LivenessProbe == nil || container.ReadinessProbe == nil {
			t.Errorf("%s has no probes", container.Name)
		}
	}
}

func TestThereIsNoNATSBesideTheActuatorWithOneOfYourOwn(t *testing.T) {
	pod := podOfTheActuator(t, kustomized(t, "base", "external-nats"))
	if len(pod.InitContainers) > 0 {
		t.Error("there is one")
	}
	want := []string{"TOKEN at /var/run/secrets/kubernetes.io/serviceaccount", "keyturn-actuator-env", "keyturn-nats-actuator"}
	testkit.WantEqual(t, "secrets of the actuator", want, secretsIn(pod, pod.Containers[0]))
}
