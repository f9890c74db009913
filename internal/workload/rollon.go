package workload

import (
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/keyturn/keyturn/internal/events"
)

// AnnotationRollOn is the annotation, on a workload or its pod template, that lists what the workload rolls on.
const AnnotationRollOn = "keyturn.dev/roll-on"

// autoWords are the words for all sources that the pod spec references, of every kind or of one. A new kind of source needs a word.
var autoWords = map[string]events.Kind{
	"auto": "", "secrets": events.KindSecret, "configmaps": events.KindConfigMap, "secretproviderclasses": events.KindSecretProviderClass,
	"openbao": events.KindOpenBao,
}

// everyKey, after #, means that every key counts, regardless of the keys that the pods read.
const everyKey = "*"

// openBaoItem starts an item that is a path in a secret store: openbao:<path>, or openbao:<store>:<path> for one store only.
const openBaoItem = "openbao:"

// readRollOn reads keyturn.dev/roll-on of the workload, or of its pod template if the workload has none. It reports whether the annotation is a list
// of sources, to which --roll-all adds nothing.
func (r *rules) readRollOn(workload, template map[string]string) (lists bool) {
	text, ok := workload[AnnotationRollOn]
	if !ok {
		text, ok = template[AnnotationRollOn]
	}
	switch {
	case !ok:
		return false
	case !r.fits(AnnotationRollOn, text):
		return true
	case strings.TrimSpace(text) == "none":
		r.none = true
		return true
	}
	empty := true
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		empty = false
		// An invalid item counts, too, because its author intended a list.
		lists = lists || !strings.HasPrefix(item, "!")
		r.readItem(item)
	}
	if empty {
		r.fail(AnnotationRollOn, "", "is empty: "+rollOnAllowed)
	}
	return lists || empty
}

// readItem reads an item of keyturn.dev/roll-on.
func (r *rules) readItem(text string) {
	item := rule{reason: byName, annotation: AnnotationRollOn, item: text}
	if kind, isWord := autoWords[text]; isWord {
		item.reason, item.kind = byAuto, kind
		r.include = append(r.include, item)
		return
	}
	named, excluded := strings.CutPrefix(text, "!")
	problem := item.source(strings.TrimSpace(named))
	if problem == "" && excluded && strings.Contains(named, "#") && !listsKeys(item.kind) {
		problem = "it is not known which of its keys change, so an exclusion is of all"
	}
	switch {
	case problem != "":
		r.fail(AnnotationRollOn, text, problem+": "+rollOnAllowed)
	case excluded:
		item.reason = Excluded
		r.exclude = append(r.exclude, item)
	default:
		r.include = append(r.include, item)
	}
}

// source reads <kind>/<name>#<key>, and returns its problem or "".
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
	if r.kind = objectKind(kind); r.kind == "" {
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

// listsKeys reports whether the events of a kind of source list its keys.
func listsKeys(kind events.Kind) bool {
	return kind == events.KindSecret || kind == events.KindConfigMap
}

// storePath reads <path>#<key> or <store>:<path>#<key>, and returns its problem or "". A colon in the first segment ends the name of a store. The key
// is only informative: events do not say which keys of a secret in a store have changed.
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

// maxStorePath is the maximum length of a path in a secret store, in bytes.
const maxStorePath = 1024

// objectKind returns the kind of sources of the API server with the given name, or "" if there is none.
func objectKind(text string) events.Kind {
	kind := events.Kind(text)
	if kind == events.KindOpenBao || !slices.Contains(events.SourceKinds(), kind) {
		return ""
	}
	return kind
}

// rollOnAllowed describes the valid items. Add new kinds of sources here.
const rollOnAllowed = "allowed are none, or any of auto, secrets, configmaps, secretproviderclasses, openbao, " +
	"<kind>/<name>, <kind>/<name>#<key>, <kind>/<name>#*, !<kind>/<name> and !<kind>/<name>#<key>, " +
	"where <kind> is secret or configmap or secretproviderclass, and openbao:<mount>/<path> or openbao:<store>:<mount>/<path>; " +
	"<name> and <path> may have * and ?"
