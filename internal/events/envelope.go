package events

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

// The names of the extensions. CloudEvents allows only lower-case letters and digits.
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

// eventType returns dev.keyturn.<kind>.<verb>.v1.
func eventType(kind Kind, verb Verb) string {
	return typePrefix + string(kind) + "." + string(verb) + "." + typeVersion
}

func parseType(text string) (Kind, Verb, error) {
	rest, ours := strings.CutPrefix(text, typePrefix)
	parts := strings.Split(rest, ".")
	if !ours || len(parts) != 3 {
		return "", "", Rejectf(ReasonUnknownType, "the type is not %s<kind>.<verb>.%s", typePrefix, typeVersion)
	}
	if parts[2] != typeVersion {
		return "", "", Rejectf(ReasonUnknownVersion, "the type is not of version %s", typeVersion)
	}
	for kind, known := range verbs {
		if i := slices.Index(known, Verb(parts[1])); string(kind) == parts[0] && i >= 0 {
			// These are the strings of the table: a substring of the header would keep the whole header in memory.
			return kind, known[i], nil
		}
	}
	return "", "", Rejectf(ReasonUnknownType, "the type has an unknown kind or verb")
}

// These components create events, as named in the source attribute: k8s://<cluster>/watcher.
const (
	watcher   = "watcher"
	actuator  = "actuator"
	projector = "projector"
)

// envelope contains the common attributes of all events.
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
	// attributes are all attributes. Those of a payload's envelope lack what follows from the fields above, and empty ones are left out.
	attributes fields
}

// payload is an event of this package: its JSON data, from which its attributes follow.
type payload interface {
	envelope() envelope
	// validate checks the fields that envelope.check does not check.
	validate() error
	// Subject returns the subject on StreamChanges.
	Subject() string
}

// encode returns the payload as a stream stores it. It returns a RejectError for an event that its decoder would reject.
func encode(p payload) (Stored, error) {
	v := p.envelope()
	if err := v.check(p); err != nil {
		return Stored{}, err
	}
	data, err := json.Marshal(p)
	if err != nil {
		return Stored{}, Rejectf(ReasonMalformed, "encoding the data: %w", err)
	}
	trace := v.trace.Valid()
	v.time = v.time.UTC()
	all := append(fields{
		{"specversion", event.CloudEventsVersionV1},
		{"id", v.id},
		{"source", sourceURI(v.cluster, v.component)},
		{"type", eventType(v.kind, v.verb)},
		{"subject", v.selfLink},
		{"datacontenttype", jsonContentType},
		{"time", v.time.Format(time.RFC3339Nano)},
		{extCluster, v.cluster},
		{extKind, string(v.kind)},
		{extPartitionKey, v.cluster + "/" + v.uid},
		{TraceparentKey, trace.Parent},
		{TracestateKey, trace.State},
	}, v.attributes...)
	v.attributes = slices.DeleteFunc(all, func(f field) bool { return f.text == "" && !isAttribute(f.name) })
	return Stored{Subject: p.Subject(), envelope: v, data: data}, nil
}

// decode is the inverse of encode, for the events of a component, and compares the event with its subject. fill sets the fields that are attributes.
// The error is a RejectError.
func decode[T payload](s Stored, component string, fill func(p *T, v envelope) error) (T, error) {
	var none, p T
	v, err := s.envelope, s.Err
	if err == nil {
		err = v.parse(component, s.data, &p)
	}
	if err == nil {
		err = fill(&p, v)
	}
	if err == nil {
		err = v.matches(p)
	}
	if err == nil {
		err = matchSubject(s.Subject, p)
	}
	if err != nil {
		return none, err
	}
	return p, nil
}

// matchSubject checks that an event is about the object that its subject names. NATS grants permissions by subject.
func matchSubject(subject string, p payload) error {
	if p.Subject() == subject {
		return nil // The subject of a checked payload is legal.
	}
	if _, err := ParseSubject(subject); err != nil {
		return err
	}
	return Rejectf(ReasonSubjectMismatch, "the event on %s is about another object", subject)
}

// parse sets the fields that follow from the attributes, and decodes the data into the value that value points to.
func (v *envelope) parse(component string, data []byte, value any) error {
	var err error
	if v.kind, v.verb, err = parseType(v.attributes.text("type")); err != nil {
		return err
	}
	v.cluster = v.attributes.text(extCluster)
	uid, ok := strings.CutPrefix(v.attributes.text(extPartitionKey), v.cluster+"/")
	switch {
	case !ok:
		return Rejectf(ReasonMalformed, "the partitionkey is not <cluster>/<uid>")
	case v.attributes.text(extKind) != string(v.kind):
		return Rejectf(ReasonMalformed, "the kind does not match the type")
	case v.attributes.text("source") != sourceURI(v.cluster, component):
		return Rejectf(ReasonMalformed, "the source is not the %s of the cluster", component)
	case v.attributes.text("datacontenttype") != jsonContentType:
		return Rejectf(ReasonMalformed, "the datacontenttype is not %s", jsonContentType)
	}
	if err := decodeJSON(data, value); err != nil {
		return &RejectError{Reason: ReasonMalformed, Err: err}
	}
	v.uid, v.trace = uid, TraceContext{Parent: v.attributes.text(TraceparentKey), State: v.attributes.text(TracestateKey)}.Valid()
	return nil
}

// check checks a payload and its attributes.
func (v envelope) check(p payload) error {
	err := cmp.Or(
		faultIf(!isLabel(v.cluster), "the cluster is not a DNS label"),
		faultIf(!slices.Contains(verbs[v.kind], v.verb), "the kind has no such verb"),
		faultIf(!isUID(v.uid), "the uid is not a Kubernetes UID"),
		faultIf(v.selfLink == "", "the kind of the object is unknown"),
		faultIf(v.time.IsZero(), "the time is missing"),
		p.validate())
	if err != nil {
		return &RejectError{Reason: ReasonMalformed, Err: err}
	}
	return nil
}

// matches checks a payload that was filled in from its data and v. The attributes must be those of the payload.
func (v envelope) matches(p payload) error {
	want := p.envelope()
	if v.kind != want.kind || v.verb != want.verb {
		return Rejectf(ReasonUnknownType, "the event is of type %s, want another one", eventType(v.kind, v.verb))
	}
	if err := want.check(p); err != nil {
		return err
	}
	for _, f := range want.attributes {
		if v.attributes.text(f.name) != f.text {
			return Rejectf(ReasonMalformed, "the attribute %s does not match the data", f.name)
		}
	}
	if v.id != want.id || v.selfLink != want.selfLink || v.uid != want.uid {
		return Rejectf(ReasonMalformed, "the id, the subject or the partitionkey does not match the other attributes")
	}
	return nil
}

const sourceScheme = "k8s://" // begins the source attribute

func sourceURI(cluster, component string) string { return sourceScheme + cluster + "/" + component }

// decodeJSON decodes one JSON value. Its errors contain the position of the fault, but no data.
func decodeJSON(data []byte, value any) error {
	err := json.Unmarshal(data, value)
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("the data is not JSON, at byte %d", syntax.Offset)
	case errors.As(err, &mistyped):
		return fmt.Errorf("the data has a value of the wrong type at byte %d", mistyped.Offset)
	default:
		return errors.New("the data cannot be decoded")
	}
}
