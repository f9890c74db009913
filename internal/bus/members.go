package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/events"
)

// Member is a cluster with events on a stream.
type Member struct {
	Cluster string    `json:"cluster"`
	Last    time.Time `json:"last,omitzero"` // the time of the cluster's last event; zero if the stream has none
	// UIDs lists the UIDs of the clusters that have claimed the name and have not been replaced, in the order of their first claims. More than one
	// means that several clusters have this name. Only claims that the stream still has count; each is renewed once a week.
	UIDs []string `json:"uids"`
	// Sourced means that the stream sources the events from the cluster's own stream. Only then do Lag and Reached apply: Lag
	// is the number of events not sourced yet, as last reported, and Reached means that the cluster is connected.
	Sourced bool   `json:"sourced"`
	Lag     uint64 `json:"lag"`
	Reached bool   `json:"reached"`
	// Checked means that the server itself keeps out messages on subjects of other clusters, because the events come through an intake: a stream for
	// this cluster only. Foreign counts such messages in the intake, and ForeignClusters lists their clusters, sorted.
	Checked         bool     `json:"checked"`
	Foreign         uint64   `json:"foreign"`
	ForeignClusters []string `json:"foreignClusters,omitempty"`
}

// reachedWithin is the maximum age of the last contact with a source. An idle source sends a heartbeat every second.
const reachedWithin = 30 * time.Second

// Members returns, sorted by name, the clusters that the stream sources and those that have claimed their name on it.
func (r *Reader) Members(ctx context.Context) ([]Member, error) {
	members, err := r.sourced(ctx)
	if err != nil {
		return nil, err
	}
	claims := HistoryQuery{Kind: events.KindCluster, Name: events.ClaimName}
	err = r.History(ctx, claims, func(stored events.Stored) error {
		if claim, err := stored.Claim(); err == nil {
			members.of(claim.Cluster).claimed(claim)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]Member, 0, len(members))
	for _, cluster := range slices.Sorted(maps.Keys(members)) {
		m := members[cluster]
		if m.Last, err = r.lastTime(ctx, cluster); err != nil {
			return nil, err
		}
		list = append(list, *m)
	}
	return list, nil
}

// members has the members by name.
type members map[string]*Member

// of returns the member with the given name. It adds the member if there is none.
func (m members) of(cluster string) *Member {
	if m[cluster] == nil {
		m[cluster] = &Member{Cluster: cluster}
	}
	return m[cluster]
}

// claimed adds a claim of the name. A cluster that was replaced but claims the name again still exists, and stays in the list.
func (m *Member) claimed(claim events.Claim) {
	if slices.Contains(m.UIDs, claim.UID) {
		return
	}
	m.UIDs = append(slices.DeleteFunc(m.UIDs, func(uid string) bool { return uid == claim.Replaces }), claim.UID)
}

// sourced returns the clusters that the stream sources, with what the stream and the intakes report about them.
func (r *Reader) sourced(ctx context.Context) (members, error) {
	info, err := infoOf(ctx, r.history)
	if err != nil {
		return nil, err
	}
	members := make(members)
	for _, source := range info.Sources {
		cluster := events.ClusterOf(source.FilterSubject)
		if cluster == "" {
			continue
		}
		m := members.of(cluster)
		m.Sourced, m.Reached = true, true
		m.addSource(source)
		if at := slices.IndexFunc(info.Config.Sources, func(config *jetstream.StreamSource) bool {
			return config.Name == source.Name && config.FilterSubject == source.FilterSubject
		}); at >= 0 {
			if err := r.intake(ctx, m, info.Config.Sources[at]); err != nil {
				return nil, err
			}
		}
	}
	return members, nil
}

// addSource adds the stream's report about one of the sources of the cluster's events.
func (m *Member) addSource(source *jetstream.StreamSourceInfo) {
	m.Lag += source.Lag
	m.Reached = m.Reached && source.Active >= 0 && source.Active < reachedWithin
}

func (r *Reader) lastTime(ctx context.Context, cluster string) (time.Time, error) {
	raw, err := r.history.GetLastMsgForSubject(ctx, r.historyRoot+cluster+".>")
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("reading the last event of %s: %w", cluster, err)
	}
	stored := events.NewStored(r.subject(raw.Subject), raw.Sequence, raw.Time, raw.Header, raw.Data)
	if made := stored.Event().Time(); !made.IsZero() {
		return made, nil
	}
	return stored.Time, nil // the message is not an event
}

// intake reads the report of an intake about its cluster: FLEET-<cluster>, before FLEET. An intake passes on only messages on subjects of this
// cluster, and keeps others from the cluster's server as evidence. The member does not change if the source is not an intake.
func (r *Reader) intake(ctx context.Context, m *Member, source *jetstream.StreamSource) error {
	if source.External != nil || r.js == nil {
		return nil
	}
	stream, err := r.js.Stream(ctx, source.Name)
	if err != nil {
		return fmt.Errorf("reading stream %s: %w", source.Name, err)
	}
	info, err := infoOf(ctx, stream, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return err
	}
	if len(info.Sources) != 1 || len(info.Config.Subjects) > 0 {
		return nil // it collects from several streams, or receives publications
	}
	m.Checked = true
	m.addSource(info.Sources[0])
	foreign := make(map[string]struct{})
	for subject, count := range info.State.Subjects {
		if covers(source.FilterSubject, subject) {
			continue
		}
		m.Foreign += count
		foreign[events.ClusterOf(subject)] = struct{}{}
	}
	delete(foreign, "")
	m.ForeignClusters = slices.Sorted(maps.Keys(foreign))
	return nil
}
