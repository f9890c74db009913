package sources

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/keyturn/keyturn/internal/events"
)

// unreadSecrets leaves out, at the API server, the Secrets that no workload reads: Helm release records, and tokens of joining nodes. Tokens of
// service accounts are not left out: agents of another cluster mount them, and the controller manager renews their content.
const unreadSecrets = "type!=helm.sh/release.v1,type!=bootstrap.kubernetes.io/token"

var secretSource = sourceKind{
	kind:     events.KindSecret,
	resource: "secrets",
	options:  func(list *metav1.ListOptions) { list.FieldSelector = unreadSecrets },
	informer: func(factory informers.SharedInformerFactory) cache.SharedIndexInformer {
		return factory.Core().V1().Secrets().Informer()
	},
	reduce: func(ring *keyring, obj any) (*object, bool) {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			return nil, false
		}
		data, derived := countedData(secret)
		reduced := newObject(ring, events.KindSecret, &secret.ObjectMeta, data)
		reduced.derived, reduced.details = derived, secretDetails(secret)
		return reduced, true
	},
	assess: func(v view, before *lastEvent, now *object, created bool) (events.Change, bool) {
		change, ok := assessContent(v, before, now, created)
		if ok && now != nil {
			writer, asked := writerOf(v.cached, now, before.usedRequest())
			if isOfHold(before, change) {
				asked = request{} // What was requested has not been written yet.
			}
			setCause(&change, writer, asked, before.usedRequest())
		}
		return change, ok
	},
}

// secretDetails returns who writes a Secret and which request it has. It returns nil if there is nothing to keep about a Secret, as for most of
// them.
func secretDetails(secret *corev1.Secret) *details {
	d := details{asked: requestOf(secret.Annotations)}
	switch owner, name := externalSecretOwner(&secret.ObjectMeta), certificateName(secret); {
	case owner != "":
		d.writer.Source = string(events.KindExternalSecret) + "/" + owner
	case name != "":
		d.writer.Source = string(events.KindCertificate) + "/" + name
		d.writer.Serial, d.writer.NotAfter = leaf(secret.Data[corev1.TLSCertKey])
		d.temporary = isTemporary(secret)
	case d.asked.event == "":
		return nil
	}
	return &d
}
