package sources

import (
	"cmp"
	"slices"
	"strings"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
)

// externalSecretOwner returns the name of the ExternalSecret that owns the object, or an empty string.
func externalSecretOwner(meta *metav1.ObjectMeta) string {
	owner := metav1.GetControllerOfNoCopy(meta)
	if owner == nil || owner.Kind != esv1.ExtSecretKind || len(validation.IsDNS1123Subdomain(owner.Name)) > 0 {
		return ""
	}
	if group, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || group.Group != esv1.Group {
		return ""
	}
	return owner.Name
}

// writerOf returns who writes a Secret and which request it was last written for. A request on the Secret itself comes
// first; if that was used before, the request on the ExternalSecret counts.
func writerOf(cached objectCache, secret *object, used string) (events.Cause, request) {
	var own details
	if secret.details != nil {
		own = *secret.details
	}
	if strings.HasPrefix(own.writer.Source, string(events.KindCertificate)+"/") {
		return own.writer, request{}
	}
	if writer := externalSecretWriting(cached, secret.source, own.writer.Source, used); writer != nil {
		own.writer.Source = writer.source.String()
		if own.asked.event == "" || own.asked.event == used {
			own.asked = writer.details.asked
		}
	}
	if own.writer.Source == "" {
		return events.Cause{}, request{}
	}
	return own.writer, own.asked
}

// externalSecretWriting returns the ExternalSecret that writes a Secret: the named one (externalsecret/<name>), or if the name is empty one that
// has the Secret as its target. If there are several, it prefers one with an unused request. It returns nil if none is known, for example because
// ExternalSecrets are not watched.
func externalSecretWriting(cached objectCache, secret events.Source, name, used string) *object {
	if name != "" {
		return cached.lookup(events.Source{
			Kind: events.KindExternalSecret, Namespace: secret.Namespace, Name: strings.TrimPrefix(name, string(events.KindExternalSecret)+"/"),
		})
	}
	writers := cached.writersTo(secret)
	if len(writers) == 0 {
		return nil
	}
	asked := func(o *object) int {
		if event := o.details.asked.event; event != "" && event != used {
			return 0
		}
		return 1
	}
	return slices.MinFunc(writers, func(a, b *object) int {
		return cmp.Or(asked(a)-asked(b), cmp.Compare(a.source.Name, b.source.Name))
	})
}
