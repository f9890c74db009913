package events

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// The names of the streams.
const (
	StreamChanges = "CHANGES" // keeps the last event on each subject: the state of each source, and for 30 days the last outcome of each workload
	// StreamHistory keeps every event for 30 days. While it is more than half full, each namespace is limited to a share of it.
	StreamHistory     = "HISTORY"
	StreamDeadLetters = "DEADLETTERS" // keeps rejected messages for 30 days, with the reason
)

// The prefixes of the subjects. The version is a token, so that a new wire format gets new subjects.
const (
	ChangesRoot    = "keyturn.v1."
	HistoryRoot    = "keyturn.history.v1."
	DeadLetterRoot = "keyturn.deadletter.v1."
)

// noNamespace is the namespace token of an object without a namespace. No legal namespace encodes to it.
const noNamespace = "_"

// Address identifies the object of the events on a subject.
type Address struct {
	Cluster   string
	Kind      Kind
	Namespace string // empty for an object without one
	// Name is the name of the source. For KindRollout and KindProjection, it is <kind>-<name> of the object.
	Name string
}

// Subject returns the subject of the changes of a source: keyturn.v1.<cluster>.<kind>.<namespace>.<name>. The verb is not part
// of it, because the stream keeps the last message of each subject as the state of the source.
func Subject(cluster string, s Source) string {
	return Address{Cluster: cluster, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}.Subject()
}

// Source returns the source that the address identifies.
func (a Address) Source() Source { return Source{Kind: a.Kind, Namespace: a.Namespace, Name: a.Name} }

// Subject encodes the address. ParseSubject is its inverse for the address of any legal object.
func (a Address) Subject() string {
	namespace := encodeToken(a.Namespace)
	if namespace == "" {
		namespace = noNamespace
	}
	name := encodeToken(a.Name)
	if a.Kind == KindOpenBao {
		name = encodePath(a.Name)
	}
	return ChangesRoot + a.Cluster + "." + string(a.Kind) + "." + namespace + "." + name
}

// HistorySubject returns the subject on StreamHistory for a subject on StreamChanges.
func HistorySubject(subject string) string {
	return HistoryRoot + strings.TrimPrefix(subject, ChangesRoot)
}

// DeadLetterSubject returns the subject of a dead letter, under the cluster of the program, which may publish only there.
func DeadLetterSubject(cluster, subject string) string {
	rest := strings.TrimPrefix(subject, ChangesRoot)
	return DeadLetterRoot + cluster + "." + strings.TrimPrefix(rest, cluster+".")
}

// ParseSubject decodes a subject of StreamChanges. It returns a RejectError for a subject that is not encoded exactly as
// Address.Subject does: with ReasonUnknownVersion for another version of the subjects, and with ReasonMalformed otherwise.
func ParseSubject(subject string) (Address, error) {
	rest, ours := strings.CutPrefix(subject, ChangesRoot)
	tokens := strings.Split(rest, ".")
	switch {
	case !ours && strings.HasPrefix(subject, "keyturn.v"):
		return Address{}, Rejectf(ReasonUnknownVersion, "subject %q is not of version v1", subject)
	case !ours || len(tokens) != 4:
		return Address{}, Rejectf(ReasonMalformed, "subject %q: want %s<cluster>.<kind>.<namespace>.<name>", subject, ChangesRoot)
	}
	a := Address{Cluster: tokens[0], Kind: Kind(tokens[1]), Name: decodeToken(tokens[3])}
	if a.Kind == KindOpenBao {
		a.Name = decodePath(tokens[3])
	}
	if tokens[2] != noNamespace {
		a.Namespace = decodeToken(tokens[2])
	}
	err := cmp.Or(
		faultIf(!isLabel(a.Cluster), "the cluster is not a DNS label"),
		faultIf(!isWord(string(a.Kind)), "the kind is not a word"),
		a.validateName(),
		faultIf(a.Subject() != subject, "a part of it is escaped in another way than by Keyturn"))
	if err != nil {
		return Address{}, Rejectf(ReasonMalformed, "subject %q: %w", subject, err)
	}
	return a, nil
}

func (a Address) validateName() error {
	name := a.Name
	switch a.Kind {
	case KindOpenBao:
		_, err := a.Source().StorePath()
		return cmp.Or(err, faultIf(a.Namespace != "", "the namespace is not "+noNamespace))
	case KindRollout, KindProjection:
		var workload string
		if workload, name, _ = strings.Cut(a.Name, "-"); !isWord(workload) {
			return errors.New("the name is not <workload kind>-<name>")
		}
	}
	return cmp.Or(
		faultIf(!isSubdomain(name), "the name is not a Kubernetes name"),
		faultIf(a.Namespace != "" && !isSubdomain(a.Namespace), "the namespace is not a Kubernetes name"))
}

// ValidateCluster checks the configured name of a cluster, which is a token of each subject and the host of the "source" attribute.
func ValidateCluster(name string) error {
	if !isLabel(name) {
		return fmt.Errorf("%q, want 1 to %d lower-case letters, digits or '-', beginning and ending with a letter or digit", name, maxLabel)
	}
	return nil
}

// encodeToken replaces the separator '.' with '_', which is no part of a Kubernetes name. decodeToken is its inverse.
func encodeToken(name string) string { return strings.ReplaceAll(name, ".", "_") }

func decodeToken(token string) string { return strings.ReplaceAll(token, "_", ".") }

// encodePath escapes characters that are illegal in a subject as %XX. It keeps the slashes, for readability.
func encodePath(name string) string {
	return escaped(name, func(c byte) bool { return isAlnum(c) || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '/' })
}

// decodePath returns "" for a token that is not percent-encoded.
func decodePath(token string) string {
	name, _ := url.PathUnescape(token)
	return name
}

// SourceFilters returns the filter subjects of all changes that a cluster's workloads can depend on.
func SourceFilters(cluster string) []string {
	var filters []string
	for _, kind := range SourceKinds() {
		filters = append(filters, KindFilter(cluster, kind))
	}
	return filters
}

// KindFilter returns the filter subject of the changes of one kind in a cluster.
func KindFilter(cluster string, kind Kind) string {
	return ChangesRoot + cluster + "." + string(kind) + ".>"
}

// OutcomeFilter returns the filter subject of all outcomes of a cluster.
func OutcomeFilter(cluster string) string {
	return ChangesRoot + cluster + "." + string(KindRollout) + ".>"
}

// StoreFilters returns the filters of the secrets in stores that the watchers of the clusters watch, also for other clusters.
func StoreFilters(clusters []string) []string {
	filters := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		filters = append(filters, KindFilter(cluster, KindOpenBao))
	}
	return filters
}
