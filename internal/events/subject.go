package events

import (
	"fmt"
	"net/url"
	"strings"
)

// The roots of the subjects. The version is a token of its own, so that a new wire format is a new tree.
const (
	changesRoot    = "keyturn.v1."
	historyRoot    = "keyturn.history.v1."
	deadLetterRoot = "keyturn.deadletter.v1."
)

const (
	maxLabel = 63
	maxName  = 253
	// noNamespace is the namespace token of what has no namespace. No legal namespace encodes to it.
	noNamespace = "_"
)

// Address is what a subject names.
type Address struct {
	Cluster string
	Kind    Kind
	// Namespace is empty for an object that is in none.
	Namespace string
	// Name is the name of the source; for KindRollout it is the workload as "<kind>-<name>".
	Name string
}

// Subject is the subject on which the changes of a source are published: keyturn.v1.<cluster>.<kind>.<namespace>.<name>.
// The verb is not in it: the stream keeps the last message of each subject, and that is the source's state.
func Subject(cluster string, s Source) string {
	return Address{Cluster: cluster, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}.Subject()
}

// OutcomeSubject is the subject on which the outcomes at a workload are published:
// keyturn.v1.<cluster>.rollout.<namespace>.<kind>-<name>. The kind of a workload has no '-', so the first one separates.
func OutcomeSubject(cluster string, w Workload) string {
	return Address{Cluster: cluster, Kind: KindRollout, Namespace: w.Namespace, Name: w.Kind + "-" + w.Name}.Subject()
}

// Subject encodes the address. ParseSubject is its inverse for every address of a legal Kubernetes object.
func (a Address) Subject() string {
	namespace := encodeToken(a.Namespace)
	if namespace == "" {
		namespace = noNamespace
	}
	name := encodeToken(a.Name)
	if a.Kind == KindOpenBao {
		name = encodePath(a.Name)
	}
	return changesRoot + a.Cluster + "." + string(a.Kind) + "." + namespace + "." + name
}

// Workload splits the name of an outcome's address. Both are empty for an address of another kind.
func (a Address) Workload() (kind, name string) {
	if a.Kind != KindRollout {
		return "", ""
	}
	kind, name, _ = strings.Cut(a.Name, "-")
	return kind, name
}

// SourceFilters are the subjects of all changes of a cluster, without the outcomes.
func SourceFilters(cluster string) []string {
	var filters []string
	for _, kind := range SourceKinds() {
		filters = append(filters, KindFilter(cluster, kind))
	}
	return filters
}

// KindFilter is the subject of all changes of a cluster's sources of one kind.
func KindFilter(cluster string, kind Kind) string {
	return changesRoot + cluster + "." + string(kind) + ".>"
}

// NamespaceFilter is the subject of all changes of a namespace's sources of one kind.
func NamespaceFilter(cluster string, kind Kind, namespace string) string {
	return changesRoot + cluster + "." + string(kind) + "." + encodeToken(namespace) + ".>"
}

// OutcomeFilter is the subject of all outcomes of a cluster.
func OutcomeFilter(cluster string) string {
	return changesRoot + cluster + "." + string(KindRollout) + ".>"
}

// HistorySubject is where the stream HISTORY has what is published on a subject of CHANGES.
func HistorySubject(subject string) string {
	return historyRoot + strings.TrimPrefix(subject, changesRoot)
}

// deadLetterSubject is where a message goes that the program of a cluster refused. The cluster is the program's own,
// which it may publish under, whatever the message claims.
func deadLetterSubject(cluster, subject string) string {
	rest := strings.TrimPrefix(subject, changesRoot)
	return deadLetterRoot + cluster + "." + strings.TrimPrefix(rest, cluster+".")
}

// ParseSubject decodes a subject of CHANGES. What no encoder could have written is refused with a RejectError:
// ReasonUnknownVersion for another version of ours, ReasonMalformed for the rest.
func ParseSubject(subject string) (Address, error) {
	rest, ours := strings.CutPrefix(subject, changesRoot)
	if !ours {
		if _, other := strings.CutPrefix(subject, "keyturn.v"); other {
			return Address{}, rejectf(ReasonUnknownVersion, "subject %q is not of version v1", subject)
		}
		return Address{}, rejectf(ReasonMalformed, "subject %q does not begin with %s", subject, changesRoot)
	}
	tokens := strings.Split(rest, ".")
	if len(tokens) != 4 {
		return Address{}, rejectf(ReasonMalformed, "subject %q: want %s<cluster>.<kind>.<namespace>.<name>", subject, changesRoot)
	}
	a := Address{Cluster: tokens[0], Kind: Kind(tokens[1]), Name: decodeToken(tokens[3])}
	if a.Kind == KindOpenBao {
		return parsePathSubject(subject, a.Cluster, tokens[2], tokens[3])
	}
	if tokens[2] != noNamespace {
		a.Namespace = decodeToken(tokens[2])
	}
	name := a.Name
	if a.Kind == KindRollout {
		var workload string
		workload, name = a.Workload()
		if !isWord(workload) {
			return Address{}, rejectf(ReasonMalformed, "subject %q: the name is not <workload kind>-<name>", subject)
		}
	}
	switch {
	case !isSubdomain(name):
		return Address{}, rejectf(ReasonMalformed, "subject %q: the name is not one of Kubernetes", subject)
	case tokens[2] != noNamespace && !isSubdomain(a.Namespace):
		return Address{}, rejectf(ReasonMalformed, "subject %q: the namespace is not one of Kubernetes", subject)
	case !isLabel(a.Cluster):
		return Address{}, rejectf(ReasonMalformed, "subject %q: the cluster is not a DNS label", subject)
	case !isWord(string(a.Kind)):
		return Address{}, rejectf(ReasonMalformed, "subject %q: the kind is not a word", subject)
	}
	return a, nil
}

// parsePathSubject reads what ParseSubject does for a secret in a store.
func parsePathSubject(subject, cluster, namespace, token string) (Address, error) {
	a := Address{Cluster: cluster, Kind: KindOpenBao, Name: decodePath(token)}
	_, err := Source{Kind: KindOpenBao, Name: a.Name}.StorePath()
	switch {
	case err != nil:
		return Address{}, rejectf(ReasonMalformed, "subject %q: %w", subject, err)
	case namespace != noNamespace || encodePath(a.Name) != token:
		return Address{}, rejectf(ReasonMalformed, "subject %q: want the namespace %s and the name escaped", subject, noNamespace)
	case !isLabel(cluster):
		return Address{}, rejectf(ReasonMalformed, "subject %q: the cluster is not a DNS label", subject)
	}
	return a, nil
}

// ValidateCluster checks the configured name of a cluster, which is a token of every subject and the host of every
// event's source.
func ValidateCluster(name string) error {
	if !isLabel(name) {
		return fmt.Errorf("cluster %q: want 1 to %d lower-case letters, digits or '-', beginning and ending with a letter or digit", name, maxLabel)
	}
	return nil
}

// A '.' is legal in the names of Kubernetes and separates the tokens of a subject; a '_' is legal in a token and in no
// name. So the one stands for the other, and both directions are exact.
func encodeToken(name string) string { return strings.ReplaceAll(name, ".", "_") }

func decodeToken(token string) string { return strings.ReplaceAll(token, "_", ".") }

// encodePath escapes what a subject cannot have, as %XX, and keeps the slashes that make a path readable.
func encodePath(name string) string {
	const digits = "0123456789ABCDEF"
	var token strings.Builder
	for _, c := range []byte(name) {
		if isAlnum(c) || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '/' {
			token.WriteByte(c)
			continue
		}
		token.WriteByte('%')
		token.WriteByte(digits[c>>4])
		token.WriteByte(digits[c&15])
	}
	return token.String()
}

// decodePath gives an empty name for what encodePath cannot have written.
func decodePath(token string) string {
	name, err := url.PathUnescape(token)
	if err != nil {
		return ""
	}
	return name
}

// isSubdomain tells whether the name is an RFC 1123 subdomain as Kubernetes means it.
func isSubdomain(name string) bool {
	if len(name) > maxName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isDashed(label) {
			return false
		}
	}
	return true
}

// isLabel tells whether the name is an RFC 1123 label.
func isLabel(name string) bool { return len(name) <= maxLabel && isDashed(name) }

func isDashed(label string) bool {
	if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for _, c := range []byte(label) {
		if !isAlnum(c) && c != '-' {
			return false
		}
	}
	return true
}

// isWord tells whether the text is of lower-case letters and digits only, as the kinds are.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if !isAlnum(c) {
			return false
		}
	}
	return text != "" && len(text) <= maxLabel
}

func isAlnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
