package events

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// A secret store that serves several clusters is watched once, by the watcher of one of them or by one that watches
// nothing else. The others read what it says: not on subjects of their own, for nobody may publish under the name of
// another cluster, but on those of the cluster that says it.

// storeFilters are the subjects of all secrets in stores that the watchers of these clusters watch.
func storeFilters(clusters []string) []string {
	filters := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		filters = append(filters, KindFilter(cluster, KindOpenBao))
	}
	return filters
}

// StoreSources are what StreamChanges has to take in where the clusters whose watchers watch the stores publish on the
// StreamChanges of another JetStream domain, over a leaf node.
func StoreSources(domain string, clusters []string) []*jetstream.StreamSource {
	sources := make([]*jetstream.StreamSource, 0, len(clusters))
	for _, filter := range storeFilters(clusters) {
		sources = append(sources, &jetstream.StreamSource{Name: StreamChanges, Domain: domain, FilterSubject: filter})
	}
	return sources
}

// carries checks that the stream gets the events about secrets in stores of the clusters: by its subjects, where they
// publish on this stream, or by a source.
func carries(config jetstream.StreamConfig, clusters []string) error {
	var errs []error
	for _, filter := range storeFilters(clusters) {
		sourced := slices.ContainsFunc(config.Sources, func(source *jetstream.StreamSource) bool {
			return source.FilterSubject == "" && len(source.SubjectTransforms) == 0 || covers(source.FilterSubject, filter)
		})
		published := slices.ContainsFunc(config.Subjects, func(pattern string) bool { return covers(pattern, filter) })
		if !sourced && !published {
			errs = append(errs, fmt.Errorf("%w: %s gets no %s: neither its subjects (%v) nor its sources cover it",
				ErrStream, config.Name, filter, config.Subjects))
		}
	}
	return errors.Join(errs...)
}
