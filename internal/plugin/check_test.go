package plugin

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// bed is an installation in which everything is well, except that no pod runs that has NATS.
type bed struct {
	objects []runtime.Object
	// secrets are the names of the Secrets that exist.
	secrets []string
	// version is that of the API server.
	version string
	// refused has resources that nobody may use.
	refused []string
	// unreviewed says that the user may not ask for the rights of others.
	unreviewed bool
	// operator says that the API server has PodMonitors, of which there are none.
	operator bool
}

func newBed() *bed {
	actuator := actuatorIn("keyturn-system")
	actuator.Labels = map[string]string{"app.kubernetes.io/part-of": "keyturn", "app.kubernetes.io/name": "keyturn-actuator"}
	actuator.Status.ReadyReplicas = 1
	actuator.Spec.Template.Spec.ServiceAccountName = "keyturn-actuator"
	watcher := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "keyturn-system", Name: "keyturn-watcher",
			Labels: map[string]string{"app.kubernetes.io/part-of": "keyturn", "app.kubernetes.io/name": "keyturn-watcher"},
		},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			ServiceAccountName: "keyturn-watcher", Containers: []corev1.Container{{Name: "watcher", Image: "keyturn:v0.1.0"}},
			Volumes: []corev1.Volume{{Name: "key", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keyturn-fingerprint-key"}}}},
		}}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1},
	}
	b := &bed{version: "v1.34.1", secrets: []string{"keyturn-fingerprint-key", "keyturn-nats-reader", "keyturn-actuator-env"}}
	b.objects = append(b.objects, actuator, watcher, configMap("keyturn", map[string]string{"KEYTURN_CLUSTER": "prod"}), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: "keyturn-actuator"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("keyturn-actuator-0"), RenewTime: &metav1.MicroTime{Time: time.Now()}, LeaseDurationSeconds: new(int32(3600)),
		},
	})
	rolled := admissionregistrationv1.Rule{
		APIGroups: []string{"apps", "batch"}, Resources: []string{"deployments", "statefulsets", "daemonsets", "cronjobs"},
	}
	for policy, ends := range map[string][]string{
		"actuator": {"actuator"}, "protected": {"protected", "protected-own", "protected-by-label"}, "keys": {"keys"},
	} {
		account := "keyturn-actuator"
		if policy == "keys" {
			account = "keyturn-keys"
		}
		b.objects = append(b.objects, &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "keyturn-system-" + policy},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConditions: []admissionregistrationv1.MatchCondition{{
					Name: "is-the-account", Expression: "request.userInfo.username in ['system:serviceaccount:keyturn-system:" + account + "']",
				}},
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					{RuleWithOperations: admissionregistrationv1.RuleWithOperations{Rule: rolled}},
				}},
			},
		})
		for _, end := range ends {
			b.objects = append(b.objects, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "keyturn-system-" + end},
				Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
					PolicyName: "keyturn-system-" + policy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				},
			})
		}
	}
	return b
}

// without removes the object of a type with a name.
func without[T metav1.Object](b *bed, name string) {
	var kept []runtime.Object
	for _, object := range b.objects {
		if one, is := object.(T); !is || one.GetName() != name {
			kept = append(kept, object)
		}
	}
	b.objects = kept
}

// plugin returns a plugin with access to the bed.
func (b *bed) plugin() *Plugin {
	client := fake.NewClientset(b.objects...)
	client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: b.version}
	allows := func(attributes *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: !slices.Contains(b.refused, attributes.Resource)}
	}
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status = allows(review.Spec.ResourceAttributes)
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if b.unreviewed {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", nil)
		}
		review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status = allows(review.Spec.ResourceAttributes)
		return true, review, nil
	})
	scheme := metadatafake.NewTestScheme()
	_ = metav1.AddMetaToScheme(scheme) // It is not there yet.
	var secrets []runtime.Object
	for _, name := range b.secrets {
		secrets = append(secrets, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "keyturn-system", Name: name},
		})
	}
	metadata := metadatafake.NewSimpleMetadataClient(scheme, secrets...)
	metadata.PrependReactor("list", "podmonitors", func(k8stesting.Action) (bool, runtime.Object, error) {
		if b.operator {
			return true, &metav1.List{}, nil
		}
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "podmonitors"}, "")
	})
	p := New("test")
	p.access.typed, p.access.metadata = client, metadata
	return p
}

func TestCheckSaysWhatDoesNotWork(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(b *bed)
		// want are the lines that are not ok, besides that of NATS, which no pod has.
		want []string
	}{
		{"nothing", func(*bed) {}, nil},
		{"an old API server", func(b *bed) { b.version = "v1.29.4" }, []string{"warning  Kubernetes: v1.29.4; want 1.30.0 or later"}},
		{"a program that is not ready", func(b *bed) {
			b.objects[0].(*appsv1.StatefulSet).Status.ReadyReplicas = 0
		}, []string{"failed   programs: not ready: keyturn-actuator (0/1)"}},
		{"no policy", func(b *bed) {
			for _, name := range []string{"keyturn-system-actuator", "keyturn-system-protected", "keyturn-system-keys"} {
				without[*admissionregistrationv1.ValidatingAdmissionPolicy](b, name)
			}
		}, []string{"warning  admission policies: none confines what the actuator may write"}},
		{"one policy of three", func(b *bed) {
			without[*admissionregistrationv1.ValidatingAdmissionPolicy](b, "keyturn-system-protected")
		}, []string{"failed   admission policy keyturn-system-protected: is missing; apply deploy/admission"}},
		{"a target without a policy", func(b *bed) {
			const file = "targets: [{apiVersion: example.org/v1, kind: Widget, resource: widgets, trigger: {field: spec.taskID, value: revision}}]"
			pods := &b.objects[0].(*appsv1.StatefulSet).Spec.Template.Spec
			pods.Volumes = append(pods.Volumes, corev1.Volume{Name: "targets", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "keyturn-targets"},
			}}})
			actuator := &pods.Containers[1]
			actuator.VolumeMounts = append(actuator.VolumeMounts, corev1.VolumeMount{Name: "targets", MountPath: "/etc/keyturn-targets"})
			actuator.Env = append(actuator.Env, corev1.EnvVar{Name: "KEYTURN_TARGETS_CONFIG", Value: "/etc/keyturn-targets"})
			b.objects = append(b.objects, configMap("keyturn-targets", map[string]string{"widgets.yaml": file}))
		}, []string{"failed   admission policy for widgets.example.org: is missing; apply deploy/admission"}},
		{"a file of targets that cannot be read", func(b *bed) {
			actuator := &b.objects[0].(*appsv1.StatefulSet).Spec.Template.Spec.Containers[1]
			actuator.Env = append(actuator.Env, corev1.EnvVar{Name: "KEYTURN_TARGETS_CONFIG", Value: "/nowhere/targets.yaml"})
		}, []string{"warning  admission policies: those of custom resources are not checked: the file /nowhere/targets.yaml of the actuator"}},
		{"policies of another account", func(b *bed) {
			b.objects[0].(*appsv1.StatefulSet).Spec.Template.Spec.ServiceAccountName = "other"
		}, []string{
			"failed   admission policy keyturn-system-actuator: does not name system:serviceaccount:keyturn-system:other",
			"failed   admission policy keyturn-system-protected: does not name system:serviceaccount:keyturn-system:other",
		}},
		{"a lost key", func(b *bed) { b.secrets = b.secrets[1:] }, []string{"failed   keys: no secret keyturn-fingerprint-key; run the job keyturn-keys again"}},
		{"a lost key among other files", func(b *bed) {
			routes := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "keyturn-nats-routes"}}
			pods := &b.objects[0].(*appsv1.StatefulSet).Spec.Template.Spec
			pods.Volumes = append(pods.Volumes, corev1.Volume{Name: "nats-config", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: routes}}},
			}})
		}, []string{"failed   keys: no secret keyturn-nats-routes; run the job keyturn-keys again"}},
		{"no leader", func(b *bed) {
			without[*coordinationv1.Lease](b, "keyturn-actuator")
		}, []string{"failed   Lease: no actuator leads; see the log of the actuator"}},
		{"no leader, with a webhook whose address is in a Secret", func(b *bed) {
			without[*coordinationv1.Lease](b, "keyturn-actuator")
			actuator := &b.objects[0].(*appsv1.StatefulSet).Spec.Template.Spec.Containers[1]
			key := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "keyturn-reloader"}, Optional: new(true)}
			actuator.Env = append(actuator.Env, corev1.EnvVar{Name: "KEYTURN_RELOADER", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: key}})
		}, nil},
		{"a right of the watcher", func(b *bed) { b.refused = []string{"secrets"} }, []string{
			"failed   your rights: no permission to get secrets/keyturn-nats-reader in namespace keyturn-system",
			"failed   rights of the watcher (keyturn-watcher): no permission to list secrets in all namespaces",
		}},
		{"rights that may not be asked for", func(b *bed) { b.unreviewed = true }, []string{
			"warning  rights of the watcher (keyturn-watcher): not checked",
			"warning  rights of the actuator (keyturn-actuator): not checked",
		}},
		{"an operator without monitors", func(b *bed) { b.operator = true }, []string{"warning  PodMonitors: none, so no alert fires"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed()
			tt.fault(b)
			p := b.plugin()
			t.Cleanup(p.Close)
			var got []string
			for _, f := range p.checkInstalled(t.Context()) {
				var out bytes.Buffer
				f.write(&out)
				if f.about == "NATS" {
					if !strings.HasPrefix(out.String(), "failed   NATS: no pod of the actuator runs in namespace keyturn-system") {
						t.Errorf("of NATS it says %s", &out)
					}
					continue
				}
				if f.result != good {
					got = append(got, strings.TrimSpace(out.String()))
				}
			}
			for i := range min(len(got), len(tt.want)) {
				if strings.HasPrefix(got[i], tt.want[i]) {
					got[i] = tt.want[i]
				}
			}
			testkit.WantEqual(t, "lines that are not ok", tt.want, got)
		})
	}
}

func TestCheckSaysThatThereIsNoInstallation(t *testing.T) {
	b := newBed()
	b.objects = nil
	found := b.plugin().checkInstalled(t.Context())
	if last := found[len(found)-1]; last.result != failure || !strings.HasPrefix(last.text, "no installation found") {
		t.Errorf("got %+v", last)
	}
}

func TestCheckSaysWhetherItCanBeInstalled(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refused []string
		want    []result
	}{
		{"by an administrator", nil, []result{good, good, good}},
		{"by somebody without rights on the cluster", []string{"clusterroles"}, []result{good, failure, good}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed()
			b.refused = tt.refused
			var got []result
			for _, f := range b.plugin().checkBefore(t.Context()) {
				got = append(got, f.result)
			}
			testkit.WantEqual(t, "results", tt.want, got)
		})
	}
}

func TestCheckWaitsUntilNothingFails(t *testing.T) {
	for _, tt := range []struct {
		name     string
		patience time.Duration
		fails    int // times
		want     result
		took     time.Duration
	}{
		{"not at all", 0, 1, failure, 0},
		{"until it works", time.Minute, 3, good, 3 * checkInterval},
		{"as long as it may", 5 * time.Second, 100, failure, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), 0
				found := wait(t.Context(), tt.patience, func(context.Context) []finding {
					if asked++; asked <= tt.fails {
						return []finding{{result: failure}}
					}
					return []finding{{result: good}}
				})
				if found[0].result != tt.want || time.Since(began) != tt.took {
					t.Errorf("got %s after %s, want %s after %s", found[0].result, time.Since(began), tt.want, tt.took)
				}
			})
		})
	}
}
