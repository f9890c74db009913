package workload

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
)

// AnnotationRollOn is the annotation, on a workload or its pod template, that lists what the workload rolls on.
const AnnotationRollOn = "keyturn.dev/roll-on"

// rollOnKinds are the kinds that roll-on accepts, and the word for all that the pod spec references of each. A new kind of source needs a line here.
var rollOnKinds = []struct {
	kind events.Kind
	word string
}{
	{events.KindSecret, "secrets"},
	{events.KindConfigMap, "configmaps"},
	{events.KindSecretProviderClass, "secretproviderclasses"},
	{events.KindOpenBao, "openbao"},
}

// everyKey, after #, means that every key counts, whichever keys the pods are seen to read.
const everyKey = "*"

// openBaoItem starts an item that is a path in a secret store: openbao:<path>, or openbao:<store>:<path> for one store only.
const openBaoItem = "openbao:"

// readRollOn reads keyturn.dev/roll-on of the workload, or that of its pod template if the workload has none. It reports whether the workload never
// rolls, and whether the annotation lists what to roll on, so that --roll-all adds nothing.
func (r *rules) readRollOn(workload, template map[string]string) (none, lists bool) {
	text, ok := workload[AnnotationRollOn]
	if !ok {
		text, ok = template[AnnotationRollOn]
	}
	switch {
	case !ok:
		return false, false
	case !r.fits(AnnotationRollOn, text):
		return false, true
	case strings.TrimSpace(text) == "none":
		return true, true
	}
	empty := true
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		empty = false
		// An item that is invalid counts, too: its author meant a list.
		lists = lists || !strings.HasPrefix(item, "!")
		r.readItem(item)
	}
	if empty {
		r.fail(AnnotationRollOn, "", "is empty", rollOnAllowed)
	}
	return false, lists || empty
}

// readItem reads an item of keyturn.dev/roll-on.
func (r *rules) readItem(text string) {
	item := rule{reason: byName, annotation: AnnotationRollOn, item: text}
	if text == "auto" {
		item.reason = byAuto
		r.include = append(r.include, item)
		return
	}
	for _, k := range rollOnKinds {
		if text == k.word {
			item.reason, item.kind = byAuto, k.kind
			r.include = append(r.include, item)
			return
		}
	}
	named, excluded := strings.CutPrefix(text, "!")
	problem := item.source(strings.TrimSpace(named))
	if problem == "" && excluded && (item.key != "" || item.whole) {
		problem = "an exclusion is of all keys"
	}
	switch {
	case problem != "":
		r.fail(AnnotationRollOn, text, problem, rollOnAllowed)
	case excluded:
		item.reason = Excluded
		r.exclude = append(r.exclude, item)
	default:
		r.include = append(r.include, item)
	}
}

// source reads <kind>/<name>#<key>, and returns what is wrong with it.
func (r *rule) source(text string) string {
	if text == "none" {
		return "none must be the only item"
	}
	if path, ok := strings.CutPrefix(text, openBaoItem); ok {
		return r.storePath(path)
	}
	kind, rest, ok := strings.Cut(text, "/")
	if !ok {
		return "not understood"
	}
	if r.kind = rollOnKind(kind); r.kind == "" || r.kind == events.KindOpenBao {
		return "unknown kind"
	}
	name, key, keyed := strings.Cut(rest, "#")
	switch {
	case keyed && key != everyKey && len(validation.IsConfigMapKey(key)) > 0:
		return "what follows # is not a data key"
	case validName(name):
		r.name = exactly(name)
	case validGlob(name):
		r.name = glob(name)
	default:
		return "not a name, nor a pattern of one"
	}
	if r.whole = key == everyKey; !r.whole {
		r.key = key
	}
	return ""
}

// storePath reads <path>#<key> or <store>:<path>#<key>, and returns what is wrong with it. A colon in the first segment ends the name of a store. The
// key is for people only: events do not say which keys of a secret in a store have changed.
func (r *rule) storePath(text string) string {
	path, key, keyed := strings.Cut(text, "#")
	first, _, _ := strings.Cut(path, "/")
	if store, _, named := strings.Cut(first, ":"); named {
		if len(validation.IsDNS1123Label(store)) > 0 {
			return "what precedes the colon is not the name of a store, and a mount with a colon needs that in front"
		}
		r.store, path = store, path[len(store)+1:]
	}
	switch {
	case keyed && key == "":
		return "what follows # is not a key"
	case path == "" || len(path) > maxStorePath || strings.Trim(path, "/") != path || strings.ContainsFunc(path, unicode.IsSpace):
		return "not a path, nor a pattern of one"
	}
	r.kind, r.name = events.KindOpenBao, exactly(path)
	if strings.ContainsAny(path, "*?") {
		r.name = pathGlob(path)
	}
	return ""
}

// maxStorePath is how long a path in a secret store may be, in bytes.
const maxStorePath = 1024

// rollOnKind returns the kind with the given name, or "" if there is none.
func rollOnKind(text string) events.Kind {
	for _, k := range rollOnKinds {
		if text == string(k.kind) {
			return k.kind
		}
	}
	return ""
}

// rollOnAllowed says what is allowed. A new kind of source is to be named here, too.
const rollOnAllowed = "allowed are none, or any of auto, secrets, configmaps, secretproviderclasses, openbao, " +
	"<kind>/<name>, <kind>/<name>#<key>, <kind>/<name>#* and !<kind>/<name>, where <kind> is secret or configmap or secretproviderclass, " +
	"and openbao:<mount>/<path> or openbao:<store>:<mount>/<path>; <name> and <path> may have * and ?"
