package workload

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/kube"
	"github.com/keyturn/keyturn/internal/reloader"
)

// reloaderKind contains Reloader's annotations for one kind of source.
type reloaderKind struct {
	kind                 events.Kind
	named, auto, exclude string
}

// reloaderKinds returns the kinds with annotations of Reloader. The keys of exclusions and of SecretProviderClasses are not configurable.
func reloaderKinds(keys reloader.Annotations) [3]reloaderKind {
	return [...]reloaderKind{
		{events.KindSecret, keys.Secret, keys.AutoSecret, "secrets.exclude.reloader.stakater.com/reload"},
		{events.KindConfigMap, keys.ConfigMap, keys.AutoConfigMap, "configmaps.exclude.reloader.stakater.com/reload"},
		{
			events.KindSecretProviderClass, "secretproviderclass.reloader.stakater.com/reload", "secretproviderclass.reloader.stakater.com/auto",
			"secretproviderclasses.exclude.reloader.stakater.com/reload",
		},
	}
}

// reloaderReader reads Reloader's annotations with Reloader's meaning.
type reloaderReader struct {
	*rules
	keys reloader.Annotations
	// strict compiles names exactly as Reloader does.
	strict bool
}

// read reads all annotations, kind by kind. All corresponds to Reloader's --auto-reload-all.
func (p reloaderReader) read(workload, template map[string]string, all bool) {
	badAuto := ""
	for _, k := range reloaderKinds(p.keys) {
		p.excluded(k, workload[k.exclude])
		from := workload
		if !p.mentioned(k, workload) {
			from = template
		}
		p.named(k, from[k.named])
		// Unlike for auto, Reloader accepts no other spelling here.
		if text := from[p.keys.Search]; text == "true" {
			p.include = append(p.include, rule{reason: bySearch, annotation: p.keys.Search, item: text, kind: k.kind})
		}
		auto, typed := from[p.keys.Auto], from[k.auto]
		if !p.auto(k, p.keys.Auto, auto) {
			badAuto = auto
		}
		if !p.auto(k, k.auto, typed) {
			p.fail(k.auto, typed, reloaderBool)
		}
		if all && auto == "" && typed == "" {
			p.include = append(p.include, rule{reason: byAll, kind: k.kind})
		}
	}
	if badAuto != "" {
		p.fail(p.keys.Auto, badAuto, reloaderBool)
	}
	if all && workload[p.keys.Auto] == "" && template[p.keys.Auto] == "" {
		// Reloader does not know secret stores, so none of its annotations is about them.
		p.include = append(p.include, rule{reason: byAll, kind: events.KindOpenBao})
	}
}

// mentioned reports whether annotations mention a kind. If those of the workload do not, the pod template's annotations are read.
func (p reloaderReader) mentioned(k reloaderKind, metadata map[string]string) bool {
	return slices.ContainsFunc([]string{k.named, k.auto, p.keys.Auto, p.keys.Search}, func(key string) bool {
		_, ok := metadata[key]
		return ok
	})
}

const reloaderBool = `read as "false": allowed are "true" and "false"`

// auto reports whether the text is valid.
func (p reloaderReader) auto(k reloaderKind, annotation, text string) bool {
	if text == "" {
		return true // This is the case for most workloads, and an error for ParseBool.
	}
	on, err := strconv.ParseBool(text)
	if on {
		p.include = append(p.include, rule{reason: byAuto, annotation: annotation, item: text, kind: k.kind})
	}
	return err == nil
}

func (p reloaderReader) excluded(k reloaderKind, text string) {
	if !p.fits(k.exclude, text) {
		return
	}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		switch {
		case item == "":
		case validName(item):
			p.exclude = append(p.exclude, rule{reason: Excluded, annotation: k.exclude, item: item, kind: k.kind, name: exactly(item)})
		default:
			p.fail(k.exclude, item, "allowed is the exact name of a "+string(k.kind))
		}
	}
}

func (p reloaderReader) named(k reloaderKind, text string) {
	if !p.fits(k.named, text) {
		return
	}
	left := kube.MaxExpressionSteps
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, steps, err := p.name(item, left)
		if err != nil {
			allowed := "allowed is the name of a " + string(k.kind) + ", or a regular expression for all of it"
			if errors.Is(err, kube.ErrExpressionTooLarge) {
				allowed = "shorten them, or write names, which do not count, or a pattern such as " + string(k.kind) + "/app-* in " + AnnotationRollOn
			}
			p.fail(k.named, item, err.Error()+": "+allowed)
			continue
		}
		left -= steps
		p.include = append(p.include, rule{reason: byName, annotation: k.named, item: item, kind: k.kind, name: name, whole: p.strict})
	}
}

// name reads an item of a list of names. It returns the steps of its expression, and an error if there are more than left. A name has no steps.
func (p reloaderReader) name(item string, left int) (matcher, int, error) {
	if validName(item) {
		if strings.Contains(item, ".") {
			return glob(strings.ReplaceAll(item, ".", "?")), 0, nil // A dot matches any character, as in an expression.
		}
		return exactly(item), 0, nil
	}
	if p.strict {
		// Reloader reads an item like this: "foo|bar" also matches foobaz.
		return kube.CompileExpression("^"+item+"$", left)
	}
	// The item is parsed alone: "a)|(b" is invalid, but would be valid in parentheses.
	tree, _, err := kube.ParseExpression(item, kube.MaxExpressionSteps)
	if err != nil {
		return nil, 0, err
	}
	if tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 {
		name := string(tree.Rune)
		if !validName(name) {
			return nil, 0, errors.New("no object can have this name")
		}
		return exactly(name), 0, nil
	}
	// A valid expression may become invalid in parentheses, for example if it ends in a quotation.
	return kube.CompileExpression("^(?:"+item+")$", left)
}
