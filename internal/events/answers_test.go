package events

import (
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/tests/testkit"
)

// An answer on the subject of a source would displace its change, because CHANGES keeps one message of each subject; on the subject of an ack it would
// take an event from the actuator; and on a subject of the JetStream API it would be a request that nobody is asked for.
func TestNoUserHasAnswersPutWhereItMayNotPublish(t *testing.T) {
	s, dir := componentServer(t, map[string]string{
		"nats.conf": "components/projector/with-audit/nats.conf", "audit.conf": "components/openbao-audit/nats.conf",
		"projector.conf": "components/projector/nats.conf",
	})
	open := func(user, inbox string) (*nats.Conn, jetstream.JetStream) {
		t.Helper()
		nc, err := Connect(t.Context(), ConnectOptions{
			URL: s.ClientURL(), Cluster: testCluster, Role: user, Inbox: inbox,
			CAFile: filepath.Join(dir, "ca.crt"), CredsFile: filepath.Join(dir, user+".nk"),
		})
		must(t, err)
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		must(t, err)
		return nc, js
	}
	nc, owner := open("actuator", "")
	must(t, declareWith(t.Context(), nc))
	_, watcher := open("watcher", "")
	m := testkit.NewMisdirection(t, testCluster, owner, watcher)
	for _, user := range []struct{ name, inbox, consumer, filter string }{
		{"reader", "_INBOX_actuator." + testCluster, "reads", ""},
		{"audit", "_INBOX_audit", "audits", KindFilter(testCluster, KindOpenBao)},
		{"projector", "", "projector-" + testCluster, KindFilter(testCluster, KindSecret)},
		{"watcher", "", "watches", ""},
	} {
		t.Run(user.name, func(t *testing.T) {
			nc, _ := open(user.name, user.inbox)
			m.Try(t, user.name, nc, user.consumer, user.filter)
		})
	}
}
