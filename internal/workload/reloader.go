package workload

import (
	"fmt"
	"math"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/expression"
)

// Annotations of Stakater's Reloader that are not about one kind of source.
const (
	reloaderAuto   = "reloader.stakater.com/auto"
	reloaderSearch = "reloader.stakater.com/search"
)

// reloaderKinds are the annotations of Reloader about one kind of source.
var reloaderKinds = []reloaderKind{
	{
		kind:    events.KindSecret,
		named:   "secret.reloader.stakater.com/reload",
		auto:    "secret.reloader.stakater.com/auto",
		exclude: "secrets.exclude.reloader.stakater.com/reload",
	},
	{
		kind:    events.KindConfigMap,
		named:   "configmap.reloader.stakater.com/reload",
		auto:    "configmap.reloader.stakater.com/auto",
		exclude: "configmaps.exclude.reloader.stakater.com/reload",
	},
}

type reloaderKind struct {
	kind                 events.Kind
	named, auto, exclude string
}

// reloaderReader reads the annotations of Reloader, which mean what they mean to Reloader.
type reloaderReader struct{ *rules }

// read reads all of them, kind by kind. All is what Reloader calls --auto-reload-all.
func (p reloaderReader) read(workload, template map[string]string, all bool) {
	badAuto := ""
	for _, k := range reloaderKinds {
		p.excluded(k, workload[k.exclude])
		from := workload
		if !k.mentioned(workload) {
			from = template
		}
		p.named(k, from[k.named])
		// Reloader accepts no other spelling here, unlike for auto.
		if text := from[reloaderSearch]; text == "true" {
			p.include = append(p.include, rule{reason: bySearch, annotation: reloaderSearch, item: text, kind: k.kind})
		}
		auto, typed := from[reloaderAuto], from[k.auto]
		if !p.auto(k, reloaderAuto, auto) {
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
		p.fail(reloaderAuto, badAuto, reloaderBool)
	}
	if all && workload[reloaderAuto] == "" && template[reloaderAuto] == "" {
		// Reloader knows no secret stores: none of its annotations is about them.
		p.include = append(p.include, rule{reason: byAll, kind: events.KindOpenBao})
	}
}

// mentioned reports whether annotations are about the kind. If those of the workload are not, those of the pod template are read.
func (k reloaderKind) mentioned(annotations map[string]string) bool {
	for _, key := range []string{k.named, k.auto, reloaderAuto, reloaderSearch} {
		if _, ok := annotations[key]; ok {
			return true
		}
	}
	return false
}

const reloaderBool = `read as "false": allowed are "true" and "false"`

// auto reports whether the text is valid.
func (p reloaderReader) auto(k reloaderKind, annotation, text string) bool {
	on, err := strconv.ParseBool(text)
	if on {
		p.include = append(p.include, rule{reason: byAuto, annotation: annotation, item: text, kind: k.kind})
	}
	return err == nil || text == ""
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
			p.exclude = append(p.exclude, rule{
				reason: Excluded, annotation: k.exclude, item: item, kind: k.kind, name: exactly(item),
			})
		default:
			p.fail(k.exclude, item, "allowed is the exact name of a "+string(k.kind))
		}
	}
}

func (p reloaderReader) named(k reloaderKind, text string) {
	if !p.fits(k.named, text) {
		return
	}
	left := expression.MaxSteps
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, size, err := reloaderName(item, left)
		if err != nil {
			p.fail(k.named, item, fmt.Sprintf("%v: allowed is the name of a %s, or a regular expression for all of it", err, k.kind))
			continue
		}
		left -= size
		p.include = append(p.include, rule{reason: byName, annotation: k.named, item: item, kind: k.kind, name: name})
	}
}

// reloaderName reads one item of a list of names. It returns the size of the expression, and an error if that is more than limit.
//
// The expression must match all of the name. Reloader compiles "^"+item+"$", in which "foo|bar" matches foobaz.
func reloaderName(item string, limit int) (matcher, int, error) {
	// The item is parsed alone: "a)|(b" is not an expression until it is put in parentheses.
	tree, size, err := expression.Parse(item, limit)
	if err != nil {
		return nil, 0, err
	}
	if tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 {
		return exactly(tree.Rune), size, nil
	}
	// What is an expression alone may be none in parentheses, such as one that ends in a quotation.
	whole, _, err := expression.Compile("^(?:"+item+")$", math.MaxInt)
	if err != nil {
		return nil, 0, err
	}
	return pattern{whole}, size, nil
}
