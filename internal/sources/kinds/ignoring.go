package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keyturn/keyturn/internal/events"
)

// annotationIgnoreKeys, on a Secret or a ConfigMap, lists patterns of the keys that count only for workloads that name them.
const annotationIgnoreKeys = "keyturn.dev/ignore-keys"

// maxIgnored is the maximum number of patterns, and maxWild that of patterns with wildcards. Each pattern is matched against each key, and a source
// may have a thousand keys. After a *, path.Match tries the rest of the pattern at each position of a name.
const maxIgnored, maxWild = 100, 10

// maxDataKey is the maximum length of a key, in bytes.
const maxDataKey = 253

// rawKey is the key in which the Vault Secrets Operator stores Vault's whole response.
const rawKey = "_raw"

// These are fields of Vault's response for a static role: those that differ even if the password does not, those that only such a response has, and
// the password, which is a private key for some databases.
var (
	staticCredsNoise     = []string{"ttl", "last_vault_rotation"}
	staticCredsMarks     = []string{"last_vault_rotation", "rotation_period", "rotation_schedule"}
	staticCredsPasswords = []string{"password", "rsa_private_key"}
)

// ignoring determines the keys of a source that do not count. If it is nil, all keys count.
type ignoring struct {
	patterns []string // of annotationIgnoreKeys
	problem  string   // the problem of the annotation
	// isAnswer says that the keys are those of a response for a static role, and isKnown that their writer is known to write such responses.
	isAnswer, isKnown bool
}

// why returns why a key does not count, or an empty string if it does.
func (i *ignoring) why(name string) string {
	switch {
	case i == nil:
	case slices.ContainsFunc(i.patterns, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }):
		return events.IgnoredByAnnotation
	case i.isAnswer && i.isKnown && slices.Contains(staticCredsNoise, name):
		return events.IgnoredAsStaticCreds
	}
	return ""
}

// isAny reports whether there may be keys that do not count.
func (i *ignoring) isAny() bool { return i != nil && (len(i.patterns) > 0 || i.isAnswer && i.isKnown) }

// addIgnoring returns the ignoring of the object, creating it if necessary.
func (o *Object) addIgnoring() *ignoring {
	own := o.addDetails()
	if own.ignoring == nil {
		own.ignoring = &ignoring{}
	}
	return own.ignoring
}

// problem returns the problem of the object's annotations, or an empty string.
func (o *Object) problem() string {
	if i := o.rare().ignoring; i != nil {
		return i.problem
	}
	return ""
}

// parseIgnored reads the patterns in annotationIgnoreKeys, and returns the problem of the first invalid item.
func parseIgnored(text string) (patterns []string, problem string) {
	wild := 0
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		switch {
		case item == "":
		case len(item) > maxDataKey || strings.Trim(item, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.*?") != "":
			if problem == "" {
				problem = fmt.Sprintf("%s: item %.40q is no key, nor a pattern of keys: allowed are letters, digits, -, _, ., * and ?",
					annotationIgnoreKeys, item)
			}
		case len(patterns) == maxIgnored:
			return patterns, fmt.Sprintf("%s: only the first %d patterns count", annotationIgnoreKeys, maxIgnored)
		case !strings.ContainsAny(item, "*?"):
			patterns = append(patterns, strings.Clone(item))
		case wild < maxWild:
			wild++
			patterns = append(patterns, strings.Clone(item))
		case problem == "":
			problem = fmt.Sprintf("%s: only the first %d patterns with * or ? count", annotationIgnoreKeys, maxWild)
		}
	}
	return patterns, events.HoldText(problem)
}

// heedWriter applies the knowledge about the writer of an object with the data.
func (o *Object) heedWriter(ring *Keyring, meta *metav1.ObjectMeta, data map[string][]byte) {
	if meta.Annotations[annotationKeys] == keysAll {
		return
	}
	made, hasRaw := newGenerated(ring, o.Source, meta, data), isStaticCreds(fieldsOf(data[rawKey]))
	if o.Source.Kind == events.KindSecret {
		isByVSO := hasRaw || isOfVaultSecretsOperator(meta) // The operator labels and owns only Secrets that it has created.
		isKnown := isByVSO || isOfExternalSecrets(meta)
		if hasRaw || isStaticCreds(data) {
			i := o.addIgnoring()
			i.isAnswer, i.isKnown = true, isKnown
		}
		if made == nil && isKnown {
			made = newAnswers(ring, o.Source, data)
		}
	}
	if made != nil {
		o.addDetails().generated = made
	}
}

// withWriter returns the object for the case that an ExternalSecret writes it, which the object itself may not show.
func (o *Object) withWriter(cached Cache) *Object {
	i := o.rare().ignoring
	if i == nil || !i.isAnswer || i.isKnown || len(cached.writersTo(o.Source)) == 0 {
		return o
	}
	known, its, copied := *i, *o.details, *o
	known.isKnown = true
	its.ignoring, copied.details = &known, &its
	return &copied
}

// isStaticCreds reports whether the fields are those of Vault's response for a static role.
func isStaticCreds[V any](fields map[string]V) bool {
	has := func(name string) bool { _, ok := fields[name]; return ok }
	return slices.ContainsFunc(staticCredsPasswords, has) && slices.ContainsFunc(staticCredsMarks, has)
}

// fieldsOf returns the fields of Vault's response in JSON, or nil if it is not one.
func fieldsOf(raw []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Unmarshal(raw, &fields) != nil { // Most values are not JSON objects.
		return nil
	}
	return fields
}

// countedAnswer returns the part of Vault's response for a static role that changes only with the password, in a canonical form. An unreadable
// response counts as it is.
func countedAnswer(raw []byte) []byte {
	fields := fieldsOf(raw)
	for _, name := range slices.Concat(staticCredsNoise, staticCredsMarks) {
		delete(fields, name)
	}
	text, err := json.Marshal(fields) // Marshal sorts the keys.
	if err != nil || fields == nil {
		return raw
	}
	return text
}

func isOfVaultSecretsOperator(meta *metav1.ObjectMeta) bool {
	return meta.Labels["app.kubernetes.io/managed-by"] == "hashicorp-vso" ||
		slices.ContainsFunc(meta.OwnerReferences, func(owner metav1.OwnerReference) bool {
			group, err := schema.ParseGroupVersion(owner.APIVersion)
			return err == nil && group.Group == "secrets.hashicorp.com"
		})
}

func isOfExternalSecrets(meta *metav1.ObjectMeta) bool {
	return externalSecretOwner(meta) != "" || meta.Labels[esv1.LabelManaged] == esv1.LabelManagedValue
}

// uncount marks the keys of the object that do not count in an event, and those that count again: from its resourceVersion on, or from an earlier one
// if they have not changed since.
func (o *Object) uncount(change *events.Change, before *LastEvent) {
	earlier, ignored := before.rare().Uncounted, o.rare().ignoring
	if len(earlier) == 0 && !ignored.isAny() {
		return
	}
	for name, key := range change.Keys {
		was := earlier[name]
		key.Ignored, key.Since = ignored.why(name), ""
		switch {
		case key.Ignored != "":
		case was.Ignored != "" && key.Fingerprint != "" && before.isGone(name): // It is a new key, whose earlier value no pod has.
		case was.Ignored != "":
			key.Since = o.ResourceVersion
		case was.Since != "" && events.CompareVersions(was.Since, o.ResourceVersion) <= 0 && !events.Newer(key.ChangedAt, was.Since):
			key.Since = was.Since
		}
		change.Keys[name] = key
	}
}

// countsOtherwise reports whether the counting keys of the object, or their basis, differ from the last event.
func (o *Object) countsOtherwise(before *LastEvent) bool {
	rare := before.rare()
	if o.problem() != rare.Problem {
		return true
	}
	own := o.rare()
	// Two watchers with different current keys would otherwise publish forever.
	if g := own.generated; g != nil && g.ring.keys[0].id == before.KeyID() && (rare.Generated == nil || *rare.Generated != *g.event(before)) {
		return true
	}
	if len(rare.Uncounted) == 0 && !own.ignoring.isAny() {
		return false
	}
	// Events do not say whether an unlisted key counts.
	return slices.ContainsFunc(before.Keys, func(k events.LastKey) bool {
		return !k.IsGone() && own.ignoring.why(k.Name) != rare.Uncounted[k.Name].Ignored
	})
}

// newAnswers returns the keys that hold Vault's whole response for a static role, as generated keys of the counting parts: the key of the Vault
// Secrets Operator, and the keys of an ExternalSecret that names no property. It returns nil if there are none.
func newAnswers(ring *Keyring, source events.Source, data map[string][]byte) *generated {
	g, isAnswer := &generated{ring: ring}, isStaticCreds(data)
	var parts [][]byte
	for _, name := range slices.Sorted(maps.Keys(data)) {
		fields := fieldsOf(data[name])
		_, isVaults := fields["last_vault_rotation"] // Other fields may also be those of a program's configuration.
		switch {
		case name == rawKey && isAnswer, isStaticCreds(fields) && (name == rawKey || isVaults):
			g.names, parts = append(g.names, name), append(parts, countedAnswer(data[name]))
		case !slices.Contains(staticCredsNoise, name):
			g.from = append(g.from, name)
		}
	}
	if len(g.names) == 0 {
		return nil
	}
	if !slices.Equal(g.names, []string{rawKey}) {
		g.from = nil // An ExternalSecret may have the other keys from elsewhere.
	}
	g.basis = ring.digest("generated", source, parts...)
	return g
}
