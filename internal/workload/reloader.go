package workload

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
)

// Annotations of Stakater's Reloader that are not specific to a kind of source.
const (
	reloaderAuto   = "reloader.stakater.com/auto"
	reloaderSearch = "reloader.stakater.com/search"
)

// reloaderKinds has the annotations of Reloader for each kind of source.
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

// reloader parses the annotations of Reloader as Reloader does, kind by kind. all corresponds to Reloader's --auto-reload-all.
func (p *optInParser) reloader(workload, template map[string]string, all bool) {
	badAuto := ""
	for _, k := range reloaderKinds {
		p.reloaderExclude(k, workload[k.exclude])
		from := workload
		if !k.mentioned(workload) {
			from = template
		}
		p.reloaderNamed(k, from[k.named])
		// Unlike for auto, Reloader accepts no other spelling here.
		if text := from[reloaderSearch]; text == "true" {
			p.include = append(p.include, rule{reason: bySearch, annotation: reloaderSearch, item: text, kind: k.kind})
		}
		auto, typed := from[reloaderAuto], from[k.auto]
		if !p.reloaderAuto(k, reloaderAuto, auto) {
			badAuto = auto
		}
		if !p.reloaderAuto(k, k.auto, typed) {
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
		// Reloader does not support secret stores, so none of its other annotations concern them.
		p.include = append(p.include, rule{reason: byAll, kind: events.KindOpenBao})
	}
}

// mentioned reports whether the annotations concern the kind. If the workload's do not, those of the pod template apply.
func (k reloaderKind) mentioned(annotations map[string]string) bool {
	for _, key := range []string{k.named, k.auto, reloaderAuto, reloaderSearch} {
		if _, ok := annotations[key]; ok {
			return true
		}
	}
	return false
}

const reloaderBool = `read as "false": allowed are "true" and "false"`

// reloaderAuto adds the rule for an auto annotation, and reports whether its text is valid.
func (p *optInParser) reloaderAuto(k reloaderKind, annotation, text string) bool {
	on, err := strconv.ParseBool(text)
	if on {
		p.include = append(p.include, rule{reason: byAuto, annotation: annotation, item: text, kind: k.kind})
	}
	return err == nil || text == ""
}

func (p *optInParser) reloaderExclude(k reloaderKind, text string) {
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

func (p *optInParser) reloaderNamed(k reloaderKind, text string) {
	if !p.fits(k.named, text) {
		return
	}
	left := maxAnnotation
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

// pattern returns the matcher of a regular expression.
type pattern struct{ *regexp.Regexp }

func (e pattern) match(name string) bool { return e.MatchString(name) }

// reloaderName parses one item of a list of names. It returns the size of the expression, and an error if that exceeds limit.
//
// The expression must match the whole name. Reloader compiles "^"+item+"$", in which "foo|bar" also matches foobaz.
func reloaderName(item string, limit int) (matcher, int, error) {
	// The item is parsed alone, because "a)|(b" is valid only within parentheses.
	tree, err := syntax.Parse(item, syntax.Perl)
	if err != nil {
		return nil, 0, shorter(err)
	}
	size := expanded(tree)
	if size > limit {
		return nil, 0, fmt.Errorf("the expressions have more than %d steps in all", maxAnnotation)
	}
	if tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 {
		return exactly(tree.Rune), size, nil
	}
	whole, err := regexp.Compile("^(?:" + item + ")$")
	if err != nil {
		return nil, 0, shorter(err)
	}
	return pattern{whole}, size, nil
}

// shorter returns the error without the expression, which may be very long and is in the item already.
func shorter(err error) error {
	if syntaxErr, ok := errors.AsType[*syntax.Error](err); ok {
		return errors.New(syntaxErr.Code.String())
	}
	return err
}

// expanded estimates the size of an expression with its repetitions expanded: "x{1000}" has seven bytes, but a thousand steps.
func expanded(tree *syntax.Regexp) int {
	size := max(1, len(tree.Rune))
	for _, sub := range tree.Sub {
		size += expanded(sub)
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Min, tree.Max, 1)
	}
	return size
}
