package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/internal/workload"
)

// dependencies returns the sources that concern a workload: those that it names, and those on the stream that its patterns match.
// Only the stream knows which store a secret is in.
func dependencies(ctx context.Context, origins events.Origins, reader *events.Reader, w *workload.Workload) ([]events.Source, error) {
	list := w.Sources()
	for _, kind := range events.SourceKinds() {
		isOfKind := func(s events.Source) bool { return s.Kind == kind }
		if !w.OptIn.HasPatterns(kind) && (kind != events.KindOpenBao || !slices.ContainsFunc(list, isOfKind)) {
			continue
		}
		err := reader.State(ctx, origins.Filters(kind, w.ID.Namespace), func(stored events.Stored) error {
			change, err := events.ParseChange(stored.Event)
			if err == nil && w.OptIn.Wants(change.Source, w.Reference(change.Source), change.Match).Wanted() {
				// The source on the stream replaces the name by which the workload references it.
				list = slices.DeleteFunc(list, func(s events.Source) bool {
					return isOfKind(s) && workload.RefersTo(s.Kind, s.Name, change.Source)
				})
				list = append(list, change.Source)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the sources of kind %s: %w", kind, err)
		}
	}
	slices.SortFunc(list, func(a, b events.Source) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list), nil
}
