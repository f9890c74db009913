package events

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// A secret store that serves several clusters is watched once, either by the watcher of one of them or by a watcher that watches
// nothing else. This watcher publishes under its own cluster's name, as NATS permissions require. The other clusters read there.

// storeFilters returns the subjects of the KindOpenBao events of the clusters.
func storeFilters(clusters []string) []string {
	filters := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		filters = append(filters, KindFilter(cluster, KindOpenBao))
	}
	return filters
}

// StoreSources returns the sources that StreamChanges needs if the given clusters publish on the StreamChanges of another
// JetStream domain, over a leaf node.
func StoreSources(domain string, clusters []string) []*jetstream.StreamSource {
	sources := make([]*jetstream.StreamSource, 0, len(clusters))
	for _, filter := range storeFilters(clusters) {
		sources = append(sources, &jetstream.StreamSource{Name: StreamChanges, Domain: domain, FilterSubject: filter})
	}
	return sources
}

// Carries returns an error if StreamChanges does not receive the KindOpenBao events of the clusters.
func (b *Bus) Carries(clusters []string) error {
	return carries(b.changes.CachedInfo().Config, clusters)
}

// carries checks that the stream receives the KindOpenBao events of the clusters: by one of its subjects, or by a source.
func carries(config jetstream.StreamConfig, clusters []string) error {
	var errs []error
	for _, filter := range storeFilters(clusters) {
		sourced := slices.ContainsFunc(config.Sources, func(source *jetstream.StreamSource) bool {
			return source.FilterSubject == "" && len(source.SubjectTransforms) == 0 || covers(source.FilterSubject, filter)
		})
		published := slices.ContainsFunc(config.Subjects, func(pattern string) bool { return covers(pattern, filter) })
		if !sourced && !published {
			errs = append(errs, fmt.Errorf("%w: %s does not receive %s: neither its subjects (%v) nor its sources cover it",
				errStream, config.Name, filter, config.Subjects))
		}
	}
	return errors.Join(errs...)
}
