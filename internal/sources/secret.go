package sources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

// unreadSecrets leaves out, at the API server, the Secrets that no workload reads: the records of Helm's releases and the
// tokens of service accounts and of joining nodes.
const unreadSecrets = "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token,type!=bootstrap.kubernetes.io/token"

var secretSource = source{
	kind:     events.KindSecret,
	resource: "secrets",
	options:  func(list *metav1.ListOptions) { list.FieldSelector = unreadSecrets },
	informer: func(factory informers.SharedInformerFactory) cache.SharedIndexInformer {
		return factory.Core().V1().Secrets().Informer()
	},
	reduce: func(ring *Keyring, obj any) (*object, bool) {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			return nil, false
		}
		data, narrowed := counted(secret)
		reduced := ring.reduce(events.KindSecret, &secret.ObjectMeta, data)
		reduced.narrowed, reduced.about = narrowed, aboutSecret(secret)
		return reduced, true
	},
	assess: func(w *Watcher, before *last, now *object, noticed queueEntry) (events.Change, bool) {
		change, worthSaying := compare(before, now, noticed.created)
		if worthSaying && now != nil {
			writer, asked := w.writerOf(now, before.usedCause())
			ascribe(&change, writer, asked, before.usedCause())
		}
		return change, worthSaying
	},
}

// aboutSecret gives what a Secret says of who writes it. It is nil for most.
func aboutSecret(secret *corev1.Secret) *about {
	a := about{asked: requestOf(secret.Annotations)}
	switch owner, name := externalSecretOwner(&secret.ObjectMeta), certificateName(secret); {
	case owner != "":
		a.writer.Source = string(events.KindExternalSecret) + "/" + owner
	case name != "":
		a.writer.Source = string(events.KindCertificate) + "/" + name
		a.writer.Serial, a.writer.NotAfter = leaf(secret.Data[corev1.TLSCertKey])
		a.temporary = isTemporary(secret)
	case a.asked.event == "":
		return nil
	}
	return &a
}
