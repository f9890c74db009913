package events

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// An intake is the stream between the CHANGES of one cluster and a stream with the events of many clusters: FLEET-<cluster> before FLEET. Whoever
// runs the cluster's server decides which subjects its messages have, whatever filter was requested. The server of the intake does not trust
// it: it passes on only messages on subjects of this cluster. The others stay in the intake, as evidence.

// intake reads what an intake says about its cluster. It does not change the member if the source is not an intake: then nobody checks the subjects.
func (r *Reader) intake(ctx context.Context, m *Member, source *jetstream.StreamSource) error {
	if source.External != nil || r.js == nil {
		return nil
	}
	stream, err := r.js.Stream(ctx, source.Name)
	if err != nil {
		return fmt.Errorf("reading stream %s: %w", source.Name, err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return fmt.Errorf("reading the subjects of stream %s: %w", source.Name, err)
	}
	if len(info.Sources) != 1 || len(info.Config.Subjects) > 0 {
		return nil // it collects from many, or takes what others publish
	}
	m.Checked = true
	m.addSource(info.Sources[0])
	foreign := make(map[string]struct{})
	for subject, count := range info.State.Subjects {
		if covers(source.FilterSubject, subject) {
			continue
		}
		m.Foreign += count
		foreign[clusterOf(subject)] = struct{}{}
	}
	delete(foreign, "")
	m.ForeignClusters = slices.Sorted(maps.Keys(foreign))
	return nil
}

// clusterOf returns the cluster of a subject or a filter, or "" if it has none.
func clusterOf(subject string) string {
	rest, ours := strings.CutPrefix(subject, changesRoot)
	cluster, _, _ := strings.Cut(rest, ".")
	if !ours || !isLabel(cluster) {
		return ""
	}
	return cluster
}

// Impersonated returns the cluster that the event claims to come from if its subject belongs to another cluster, and "" otherwise.
func (s Stored) Impersonated() string {
	if s.Err != nil {
		return ""
	}
	named, _ := s.Event.Extensions()[extCluster].(string)
	own := clusterOf(s.Subject)
	if named == own {
		named, _, _ = strings.Cut(strings.TrimPrefix(s.Event.Source(), sourceScheme), "/")
	}
	if named == own {
		return ""
	}
	return named
}
