package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

// The names of the extensions. CloudEvents allows lower-case letters and digits only.
const (
	extCluster         = "clustername"
	extKind            = "kind"
	extNamespace       = "namespace"
	extName            = "name"
	extResourceVersion = "resourceversion"
	extFingerprint     = "fingerprint"
	extPartitionKey    = "partitionkey"
	extCausationID     = "causationid"
	extWorkloadKind    = "workloadkind"
)

const (
	typePrefix  = "dev.keyturn."
	typeVersion = "v1"
)

// verbs lists which events there are of each kind.
var verbs = map[Kind][]Verb{
	KindSecret:         {VerbObserved, VerbChanged, VerbDeleted},
	KindConfigMap:      {VerbObserved, VerbChanged, VerbDeleted},
	KindOpenBao:        {VerbObserved, VerbRotated, VerbDeleted},
	KindExternalSecret: {VerbObserved, VerbSynced, VerbFailed, VerbDeleted},
	KindCertificate:    {VerbObserved, VerbIssued, VerbFailed, VerbDeleted},
	KindRollout:        {VerbStarted, VerbCompleted, VerbFailed, VerbSkipped, VerbHeld},
	KindCluster:        {VerbClaimed},
}

func hasVerb(kind Kind, verb Verb) bool { return slices.Contains(verbs[kind], verb) }

// eventType is the type of an event: dev.keyturn.<kind>.<verb>.v1.
func eventType(kind Kind, verb Verb) string {
	return typePrefix + string(kind) + "." + string(verb) + "." + typeVersion
}

func parseType(text string) (Kind, Verb, error) {
	rest, ours := strings.CutPrefix(text, typePrefix)
	parts := strings.Split(rest, ".")
	if !ours || len(parts) != 3 {
		return "", "", rejectf(ReasonUnknownType, "the type is not %s<kind>.<verb>.%s", typePrefix, typeVersion)
	}
	if parts[2] != typeVersion {
		return "", "", rejectf(ReasonUnknownVersion, "the type is not of version %s", typeVersion)
	}
	for kind, known := range verbs {
		if i := slices.Index(known, Verb(parts[1])); string(kind) == parts[0] && i >= 0 {
			// Those of the table: whoever keeps a part of a header keeps all of it in memory.
			return kind, known[i], nil
		}
	}
	return "", "", rejectf(ReasonUnknownType, "the type has an unknown kind or verb")
}

// The programs that make events. Each is the path of the source attribute: k8s://<cluster>/watcher.
const (
	watcher  = "watcher"
	actuator = "actuator"
)

// envelope is what the attributes of a change and of an outcome have in common.
type envelope struct {
	cluster   string
	component string
	kind      Kind
	verb      Verb
	id        string
	selfLink  string
	uid       string
	time      time.Time
	trace     TraceContext
	// extensions are the others. An empty one is left out.
	extensions map[string]string
}

// event makes the CloudEvent. Its data is the JSON of payload.
func (v envelope) event(payload any) (event.Event, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return event.Event{}, fmt.Errorf("encoding the data: %w", err)
	}
	e := event.New()
	e.SetID(v.id)
	e.SetType(eventType(v.kind, v.verb))
	e.SetSource(sourceURI(v.cluster, v.component))
	e.SetSubject(v.selfLink)
	e.SetTime(v.time.UTC())
	e.SetDataContentType(jsonContentType)
	e.DataEncoded = data
	trace := v.trace.valid()
	for name, value := range v.extensions {
		setExtension(&e, name, value)
	}
	setExtension(&e, extCluster, v.cluster)
	setExtension(&e, extKind, string(v.kind))
	setExtension(&e, extPartitionKey, v.cluster+"/"+v.uid)
	setExtension(&e, traceparentKey, trace.Parent)
	setExtension(&e, tracestateKey, trace.State)
	if err := e.Validate(); err != nil {
		return event.Event{}, fmt.Errorf("making the event: %w", err)
	}
	return e, nil
}

func setExtension(e *event.Event, name, value string) {
	if value != "" {
		e.SetExtension(name, value)
	}
}

// parseEnvelope reads the attributes and decodes the data into payload. Its extensions are all there are.
func parseEnvelope(e event.Event, component string, payload any) (envelope, error) {
	if e.Context == nil {
		return envelope{}, rejectf(ReasonMalformed, "the event has no attributes")
	}
	kind, verb, err := parseType(e.Type())
	if err != nil {
		return envelope{}, err
	}
	v := envelope{
		component: component, kind: kind, verb: verb, id: e.ID(), selfLink: e.Subject(), time: e.Time(),
		extensions: make(map[string]string),
	}
	for name, value := range e.Extensions() {
		if text, ok := value.(string); ok {
			v.extensions[name] = text
		}
	}
	v.cluster = v.extensions[extCluster]
	v.trace = TraceContext{Parent: v.extensions[traceparentKey], State: v.extensions[tracestateKey]}.valid()
	var ok bool
	v.uid, ok = strings.CutPrefix(v.extensions[extPartitionKey], v.cluster+"/")
	switch {
	case !ok:
		return envelope{}, rejectf(ReasonMalformed, "the partitionkey is not <cluster>/<uid>")
	case v.extensions[extKind] != string(kind):
		return envelope{}, rejectf(ReasonMalformed, "the kind is not that of the type")
	case e.Source() != sourceURI(v.cluster, component):
		return envelope{}, rejectf(ReasonMalformed, "the source is not the %s of the cluster", component)
	case e.DataContentType() != jsonContentType:
		return envelope{}, rejectf(ReasonMalformed, "the datacontenttype is not %s", jsonContentType)
	}
	if err := decodeJSON(e.Data(), payload); err != nil {
		return envelope{}, &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return v, nil
}

// matches checks what can be computed from the rest: the id and the self link.
func (v envelope) matches(want envelope) error {
	switch {
	case v.id != want.id:
		return rejectf(ReasonMalformed, "the id does not agree with the other attributes")
	case v.selfLink != want.selfLink:
		return rejectf(ReasonMalformed, "the subject attribute does not agree with the other attributes")
	}
	return nil
}

func sourceURI(cluster, component string) string { return "k8s://" + cluster + "/" + component }

// valid gives the trace context as far as it is valid. A trace that is broken is not worth a change that is lost.
func (t TraceContext) valid() TraceContext { return TraceFrom(t.Context(context.Background())) }

// decodeJSON decodes one JSON value. Its errors tell where, and nothing of what is there.
func decodeJSON(data []byte, payload any) error {
	err := json.Unmarshal(data, payload)
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("the data is not JSON, at byte %d", syntax.Offset)
	case errors.As(err, &mistyped):
		return fmt.Errorf("the data has a wrong type at byte %d", mistyped.Offset)
	default:
		return errors.New("the data cannot be decoded")
	}
}
