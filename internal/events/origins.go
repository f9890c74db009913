package events

import (
	"context"
	"errors"
	"fmt"
)

// Origins names the clusters whose changes an actuator acts on.
type Origins struct {
	Cluster string // the actuator's own cluster
	// StoresFrom lists the clusters whose watchers watch secret stores for it. Of their changes, only those in stores are acted on.
	StoresFrom []string
}

// clusters returns the clusters whose changes of a kind are acted on. The actuator's own cluster is first.
func (o Origins) clusters(kind Kind) []string {
	clusters := []string{o.Cluster}
	if kind == KindOpenBao {
		clusters = append(clusters, o.StoresFrom...)
	}
	return clusters
}

// subjects returns the subjects on which the last event of a source may be. The subject of the actuator's own cluster is first.
func (o Origins) subjects(source Source) []string {
	var subjects []string
	for _, cluster := range o.clusters(source.Kind) {
		subjects = append(subjects, Subject(cluster, source))
	}
	return subjects
}

// Filters returns the subject filters of the sources of a kind that a namespace can reference. Secrets in stores have no namespace.
func (o Origins) Filters(kind Kind, namespace string) []string {
	if kind != KindOpenBao {
		return []string{NamespaceFilter(o.Cluster, kind, namespace)}
	}
	var filters []string
	for _, cluster := range o.clusters(kind) {
		filters = append(filters, KindFilter(cluster, kind))
	}
	return filters
}

// lastReader reads the last event on a subject, as a Reader does.
type lastReader interface {
	Last(ctx context.Context, subject string) (Stored, error)
}

// Last returns the last event of a source. The error wraps ErrNotFound if there is none. For a name that no object can have, such as one from an
// annotation, it sends no request: NATS refuses a subject with a space, and a server closes the connection for a subject of more than 4 KiB.
func (o Origins) Last(ctx context.Context, reader lastReader, source Source) (Stored, error) {
	if !source.isLegal() {
		return Stored{}, fmt.Errorf("reading the last event of %.100q, which no object can be called: %w", source.String(), ErrNotFound)
	}
	var stored Stored
	var err error
	for _, subject := range o.subjects(source) {
		if stored, err = reader.Last(ctx, subject); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return stored, err
}
