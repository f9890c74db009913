package sources

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/externalsecret"
)

// Annotations that whoever asks for an ExternalSecret to be synced leaves on it. The operator copies them to the Secret,
// but for ExternalSecrets with a template.
const (
	annotationCause       = "keyturn.dev/cause"
	annotationTraceparent = "keyturn.dev/traceparent"
)

// maxCause is the longest id of an event that is taken for a cause, in bytes.
const maxCause = 1200

// request is what stands on an object about why it was to be written.
type request struct {
	// event is the id of the event that led to it.
	event string
	trace events.TraceContext
}

// requestOf reads the annotations. All are of anybody who may write the object, so they are taken as far as they are what
// they should be.
func requestOf(annotations map[string]string) request {
	event, parent := annotations[annotationCause], annotations[annotationTraceparent]
	if event == "" {
		// It is all that there is on what was asked for by way of a ClusterExternalSecret.
		forced, _ := externalsecret.ParseForceSync(annotations[externalsecret.AnnotationForceSync])
		event, parent = forced.Event, forced.Traceparent
	}
	if event = printable(event, maxCause); event == "" {
		return request{}
	}
	// What is no trace context is none after it was taken for one and written again.
	trace := events.TraceContext{Parent: parent}
	return request{event: event, trace: events.TraceFrom(trace.Context(context.Background()))}
}

// printable gives the text where it is of at most so many bytes, all of them of printable characters, and else none.
func printable(text string, size int) string {
	if len(text) > size || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return text
}

// externalSecretOwner is the ExternalSecret that owns the object, in the namespace of the object. It is empty where none
// does.
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

// ascribe writes into an event who wrote the object and which event had it written, of which the one that is used has had
// an earlier change already. The event then belongs to the trace of the event that had it written.
func ascribe(change *events.Change, writer events.Cause, asked request, used string) {
	if asked.event != "" && asked.event != used {
		writer.Event = asked.event
		if change.Verb != events.VerbObserved {
			change.Trace = asked.trace
		}
	}
	// What has failed may be tried again for the same event, so it is not used up.
	if writer.Event == "" || change.Verb == events.VerbFailed {
		writer.Earlier = used
	}
	if writer != (events.Cause{}) {
		change.Cause = &writer
	}
}

// writerOf gives who writes a Secret, and why it was to be written now. What stands on the Secret itself is what it was
// written for; where that is nothing new, the ExternalSecret knows.
func (w *Watcher) writerOf(secret *object, used string) (events.Cause, request) {
	var known about
	if secret.about != nil {
		known = *secret.about
	}
	if strings.HasPrefix(known.writer.Source, string(events.KindCertificate)+"/") {
		return known.writer, request{}
	}
	if writer := w.externalSecretOf(secret.source, known.writer.Source, used); writer != nil {
		known.writer.Source = writer.source.String()
		if known.asked.event == "" || known.asked.event == used {
			known.asked = writer.about.asked
		}
	}
	if known.writer.Source == "" {
		return events.Cause{}, request{}
	}
	return known.writer, known.asked
}

// externalSecretOf finds the ExternalSecret that writes a Secret: the one with the name, as events write it, or where that
// is empty one whose target the Secret is. Of several it is one that was asked for since. It is nil where none is known, as
// it is where ExternalSecrets are not watched.
func (w *Watcher) externalSecretOf(secret events.Source, name, used string) *object {
	if name != "" {
		return w.lookup(events.Source{
			Kind: events.KindExternalSecret, Namespace: secret.Namespace, Name: strings.TrimPrefix(name, string(events.KindExternalSecret)+"/"),
		})
	}
	var writers []*object
	for _, informer := range w.stores[events.KindExternalSecret] {
		found, err := informer.GetIndexer().ByIndex(targetIndex, secret.Namespace+"/"+secret.Name)
		if err != nil {
			continue // the index is there: the informer was made with it
		}
		for _, obj := range found {
			if writer, ok := obj.(*object); ok {
				writers = append(writers, writer)
			}
		}
	}
	if len(writers) == 0 {
		return nil
	}
	asked := func(o *object) int {
		if event := o.about.asked.event; event != "" && event != used {
			return 0
		}
		return 1
	}
	return slices.MinFunc(writers, func(a, b *object) int {
		return cmp.Or(asked(a)-asked(b), cmp.Compare(a.source.Name, b.source.Name))
	})
}
