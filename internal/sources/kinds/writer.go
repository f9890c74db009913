package kinds

import (
	"cmp"
	"slices"
	"strings"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// maxCause is the maximum length of an event ID that is accepted as a cause, in bytes.
const maxCause = 1200

// request is the reason why the write of an object was requested, according to its annotations.
type request struct {
	// event is the ID of the event that led to the request.
	event string
	trace events.TraceContext
}

// requestOf reads a request from annotations, which anyone who can edit the object can set, so it validates them.
func requestOf(annotations map[string]string) request {
	event, parent := annotations[events.AnnotationCause], annotations[events.AnnotationTraceparent]
	if event == "" {
		// An object of a ClusterExternalSecret has only the force-sync annotation.
		forced, _ := externalsecret.ParseForceSync(annotations[externalsecret.AnnotationForceSync])
		event, parent = forced.Event, forced.Traceparent
	}
	if event = ifPrintable(event, maxCause); event == "" {
		return request{}
	}
	return request{event: event, trace: events.TraceContext{Parent: parent}.Valid()}
}

// ifPrintable returns the text if it is a printable line of at most size bytes, and otherwise an empty string, because a part of a name is useless.
func ifPrintable(text string, size int) string {
	if events.Shorten(text, size) != text {
		return ""
	}
	return text
}

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

// writerOf returns the writer of a Secret and the request that it was last written for. A request on the Secret itself takes precedence; if that was
// used before, the request on the ExternalSecret counts.
func writerOf(cached Cache, secret *Object, used string) (events.Cause, request) {
	own := secret.rare()
	if strings.HasPrefix(own.writer.Source, string(events.KindCertificate)+"/") {
		return own.writer, request{}
	}
	if writer := externalSecretWriting(cached, secret.Source, own.writer.Source, used); writer != nil {
		own.writer.Source = writer.Source.String()
		if own.asked.event == "" || own.asked.event == used {
			own.asked = writer.details.asked
		}
	}
	if own.writer.Source == "" {
		return events.Cause{}, request{}
	}
	return own.writer, own.asked
}

// externalSecretWriting returns the ExternalSecret that writes a Secret: the named one (externalsecret/<name>) or, without a name, one that has the
// Secret as its target, preferably one with an unused request. It returns nil if none is known, for example because ExternalSecrets are not watched.
func externalSecretWriting(cached Cache, secret events.Source, name, used string) *Object {
	if name != "" {
		return cached.Lookup(events.Source{
			Kind: events.KindExternalSecret, Namespace: secret.Namespace, Name: strings.TrimPrefix(name, string(events.KindExternalSecret)+"/"),
		})
	}
	writers := cached.writersTo(secret)
	if len(writers) == 0 {
		return nil
	}
	asked := func(o *Object) int {
		if event := o.details.asked.event; event != "" && event != used {
			return 0
		}
		return 1
	}
	return slices.MinFunc(writers, func(a, b *Object) int {
		return cmp.Or(asked(a)-asked(b), cmp.Compare(a.Source.Name, b.Source.Name))
	})
}

// setCause adds the writer of the object and the requesting event to an event. If used names the same request, an earlier change was its effect
// already. An event with a request joins the trace of the request.
func setCause(change *events.Change, writer events.Cause, asked request, used string) {
	if asked.event != "" && asked.event != used {
		writer.Event = asked.event
		if change.Verb != events.VerbObserved {
			change.Trace = asked.trace
		}
	}
	// A failed sync may be retried for the same request, so the request remains usable.
	if writer.Event == "" || change.Verb == events.VerbFailed {
		writer.Earlier = used
	}
	if writer != (events.Cause{}) {
		change.Cause = &writer
	}
}
