package embedded

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/keyturn/keyturn/internal/bus"
	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/natstest"
)

// guarded is a server with the users of deploy/programs/nats.conf, as in the actuator's pod.
type guarded struct {
	*testing.T
	url  string
	keys string
	own  nats.Option
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{T: t, keys: t.TempDir()}
	testkit.SetNATSVariables(t, g.keys, "watcher", "actuator", "reader")
	s, err := Start(Options{StoreDir: testkit.StoreDir(t), ConfigFile: "../../../deploy/programs/nats.conf"}, nil)
	testkit.Must(t, err)
	t.Cleanup(s.Shutdown)
	g.url, g.own = s.ClientURL(), s.ClientOption()
	return g
}

// connect connects as a user. What the server refuses goes to the channel.
func (g *guarded) connect(user string, further ...nats.Option) (*nats.Conn, <-chan error) {
	g.Helper()
	role := user
	if user == "reader" {
		role = "actuator" // as the commands do
	}
	refused := make(chan error, 64)
	options := append(further, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	connection, err := bus.Connect(g.Context(), bus.ConnectOptions{
		URL: g.url, Cluster: "prod", Role: role, Name: "test", CredsFile: filepath.Join(g.keys, user+".nk"), CAFile: filepath.Join(g.keys, "ca.crt"),
	}, options...)
	testkit.Must(g, err)
	g.Cleanup(connection.Close)
	return connection, refused
}

// works opens the streams as a user, lets it use them, and checks that it was refused nothing.
func (g *guarded) works(user string, use func(*bus.Bus) error, further ...nats.Option) {
	g.Helper()
	connection, _ := g.connect(user, further...)
	stream, err := bus.Open(g.Context(), connection, "prod", nil)
	if err == nil {
		err = use(stream)
	}
	if err := errors.Join(err, connection.FlushTimeout(testkit.Patience)); err != nil {
		g.Errorf("%s: %v", user, err)
	}
	// The client tells its handler of a refusal later.
	if err := connection.LastError(); err != nil {
		g.Errorf("%s: %v", user, err)
	}
}

// declare declares the streams as the actuator does, and has the consumer of a projector there.
func (g *guarded) declare() jetstream.JetStream {
	g.Helper()
	connection, _ := g.connect("actuator", g.own)
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience/2))
	if err == nil {
		err = bus.Declare(g.Context(), js, bus.Declared(1))
	}
	testkit.Must(g, err)
	if _, err := js.CreateConsumer(g.Context(), events.StreamChanges, jetstream.ConsumerConfig{
		Durable: "projector-prod", FilterSubject: events.KindFilter("prod", events.KindSecret), AckPolicy: jetstream.AckExplicitPolicy,
	}); err != nil {
		g.Fatal(err)
	}
	return js
}

// TestEachNATSUserCanDoItsWork does what the programs and the commands do, as the users of nats.conf.
func TestEachNATSUserCanDoItsWork(t *testing.T) {
	g := newGuarded(t)
	g.declare()
	change := numbered(1)
	change.Cluster = "prod"
	g.works("watcher", func(b *bus.Bus) error {
		natstest.Publish(t, func() error {
			_, err := b.PublishChange(t.Context(), change, 0)
			return err
		})
		lastErr := natstest.Answered(t, func() error {
			_, err := b.Last(t.Context(), events.Subject("prod", change.Source))
			return err
		})
		read := 0
		stateErr := natstest.Answered(t, func() error {
			read = 0
			return b.State(t.Context(), events.SourceFilters("prod"), func(events.Stored) error { read++; return nil })
		})
		if read != 1 {
			t.Errorf("the watcher has read %d sources, want 1", read)
		}
		natstest.Publish(t, func() error { return b.Claim(t.Context(), "uid", "") })
		return errors.Join(lastErr, stateErr)
	})
	for _, user := range []string{"actuator", "reader"} {
		g.works(user, func(b *bus.Bus) error {
			read, members := 0, 0
			err := natstest.Answered(t, func() error {
				read = 0
				count := func(events.Stored) error { read++; return nil }
				_, lastErr := b.Last(t.Context(), events.Subject("prod", change.Source))
				_, lettersErr := b.DeadLetters(t.Context(), 10)
				return errors.Join(lastErr, lettersErr, b.State(t.Context(), events.SourceFilters("prod"), count),
					b.History(t.Context(), bus.HistoryQuery{}, count))
			})
			if user == "reader" {
				err = errors.Join(err, natstest.Answered(t, func() error {
					found, err := b.Members(t.Context())
					members = len(found)
					return err
				}))
				if members != 1 {
					t.Errorf("the %s finds %d clusters, want 1", user, members)
				}
			}
			if read != 3 {
				t.Errorf("the %s has read %d events, want the change twice and the claim", user, read)
			}
			return err
		})
	}
}

// TestWhatANATSUserMayNotDoIsRefused tries, one by one, operations that only another program may do, or none.
func TestWhatANATSUserMayNotDoIsRefused(t *testing.T) {
	g := newGuarded(t)
	g.declare()
	everybody := []string{
		"$JS.API.STREAM.DELETE.CHANGES", "$JS.API.STREAM.PURGE.CHANGES", "$JS.API.STREAM.MSG.DELETE.CHANGES", "$JS.API.STREAM.MSG.GET.CHANGES",
		"$JS.API.STREAM.RESTORE.CHANGES", "$JS.API.STREAM.SNAPSHOT.CHANGES", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST",
		"$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.UPDATE.MINE", "$JS.API.CONSUMER.CREATE.MINE.mine", "$JS.API.ACCOUNT.PURGE.$G",
		"$JS.API.STREAM.LEADER.STEPDOWN.CHANGES", "$JS.API.META.LEADER.STEPDOWN", "$JS.API.CONSUMER.LEADER.STEPDOWN.CHANGES.projector-prod",
		"$JS.API.CONSUMER.DELETE.CHANGES.projector-prod", "$JS.API.CONSUMER.PAUSE.CHANGES.projector-prod", "$JS.API.CONSUMER.RESET.CHANGES.projector-prod",
		"$JS.API.CONSUMER.NAMES.CHANGES", "$JS.API.CONSUMER.LIST.CHANGES", "$JS.API.CONSUMER.NAMES.HISTORY", "$JS.API.CONSUMER.LIST.HISTORY",
		"$JS.API.CONSUMER.UNPIN.CHANGES.projector-prod", "$JS.API.CONSUMER.DURABLE.CREATE.CHANGES.projector-prod", "$JS.API.CONSUMER.CREATE.CHANGES",
		"$SYS.REQ.SERVER.PING", "keyturn.v1.prod.unheard.shop.db", "keyturn.fleet.prod.S.guess", "_INBOX_watcher.prod.x", "_INBOX_actuator.prod.x",
		"$JS.ACK.DEADLETTERS.mine.1.1.1.1.0",
	}
	ofTheOwner := []string{
		"$JS.ACK.CHANGES.projector-prod.1.1.1.1.0", "$JS.ACK.HISTORY.notify-prod_chat.1.1.1.1.0",
		"$JS.API.STREAM.CREATE.CHANGES", "$JS.API.STREAM.UPDATE.CHANGES", "$JS.API.STREAM.UPDATE.HISTORY",
	}
	outcomes := []string{"keyturn.v1.prod.rollout.shop.deployment-web", "keyturn.history.v1.prod.rollout.shop.deployment-web", "keyturn.deadletter.v1.prod.x"}
	changes := []string{
		"keyturn.v1.prod.secret.shop.db", "keyturn.v1.prod.configmap.shop.db", "keyturn.v1.prod.externalsecret.shop.db",
		"keyturn.v1.prod.certificate.shop.db", "keyturn.v1.prod.openbao._.db", "keyturn.v1.prod.secretproviderclass.shop.db",
		"keyturn.v1.prod.cluster._.identity", "keyturn.history.v1.prod.secret.shop.db",
	}
	history := []string{"$JS.API.CONSUMER.CREATE.HISTORY.mine", "$JS.API.CONSUMER.CREATE.DEADLETTERS.mine", "$JS.API.CONSUMER.MSG.NEXT.HISTORY.notify-prod_chat"}
	for user, subjects := range map[string][][]string{
		"watcher": {everybody, ofTheOwner, outcomes, history}, "actuator": {everybody, changes}, "reader": {everybody, ofTheOwner, outcomes, changes},
	} {
		connection, refused := g.connect(user)
		for _, list := range subjects {
			for _, subject := range list {
				t.Run(user+" publishes on "+subject, func(t *testing.T) {
					testkit.Must(t, connection.Publish(subject, nil))
					isRefused(t, connection, refused, "permissions violation for publish", subject)
				})
			}
		}
		foreign := []string{">", "keyturn.>", "$JS.>", "$JS.EVENT.ADVISORY.>", "_INBOX.>", "_INBOX_watcher.>"}
		if user == "watcher" {
			foreign = append(foreign[:5], "_INBOX_actuator.prod.>")
		}
		for _, subject := range foreign {
			t.Run(user+" listens to "+subject, func(t *testing.T) {
				subscription, err := connection.SubscribeSync(subject)
				testkit.Must(t, err)
				isRefused(t, connection, refused, "permissions violation for subscription", subject)
				_ = subscription.Unsubscribe() // The server has not subscribed it.
			})
		}
	}
}

// isRefused checks that the server refused the last thing that was sent.
func isRefused(t *testing.T, connection *nats.Conn, refused <-chan error, how, subject string) {
	t.Helper()
	testkit.Must(t, connection.FlushTimeout(testkit.Patience))
	err := testkit.Receive(t, subject+" is refused", refused)
	if text := strings.ToLower(err.Error()); !strings.Contains(text, how) || !strings.Contains(text, strings.ToLower(subject)) {
		t.Errorf("got %v, want that %s is refused", err, subject)
	}
}

// TestTheWatcherCannotReachThroughWhatItMay tries what the subject of a request does not show: another name in the request, and headers.
func TestTheWatcherCannotReachThroughWhatItMay(t *testing.T) {
	g := newGuarded(t)
	owner := g.declare()
	connection, _ := g.connect("watcher")
	js, err := jetstream.New(connection, jetstream.WithDefaultTimeout(testkit.Patience/2))
	testkit.Must(t, err)
	configOf := func() jetstream.ConsumerConfig {
		consumer, err := owner.Consumer(t.Context(), events.StreamChanges, "projector-prod")
		testkit.Must(t, err)
		return consumer.CachedInfo().Config
	}
	before := configOf()
	for _, config := range []jetstream.ConsumerConfig{
		{Durable: "projector-prod", HeadersOnly: true}, {Name: "projector-prod", Durable: "projector-prod"}, {Name: "projector-prod", HeadersOnly: true},
	} {
		config.AckPolicy = jetstream.AckExplicitPolicy
		request, err := json.Marshal(map[string]any{"stream_name": events.StreamChanges, "config": config})
		testkit.Must(t, err)
		answer, err := connection.Request("$JS.API.CONSUMER.CREATE.CHANGES.mine", request, testkit.Patience)
		testkit.Must(t, err)
		t.Logf("%s %s: answered %s", config.Durable, config.Name, answer.Data)
	}
	if diff := cmp.Diff(before, configOf()); diff != "" {
		t.Errorf("a consumer was changed (-before +after):\n%s", diff)
	}
	const own = "keyturn.v1.prod.secret.shop.db"
	testkit.Must(t, errIn(js.Publish(t.Context(), own, []byte("first"))))
	for header, value := range map[string]string{
		"Nats-Rollup": "all", "Nats-Stream-Source": "CHANGES 1 keyturn.v1.us.> > keyturn.v1.us.secret.shop.db", "Nats-Incr": "+1",
		"Nats-Schedule": "@every 1s",
	} {
		msg := nats.NewMsg("keyturn.v1.prod.secret.shop.other")
		msg.Header.Set(header, value)
		if header == "Nats-Schedule" {
			msg.Header.Set("Nats-Schedule-Target", "keyturn.v1.prod.rollout.shop.deployment-web")
		}
		var refused *jetstream.APIError
		if _, err := js.PublishMsg(t.Context(), msg); !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want it refused", header, err)
		}
	}
	stream, err := owner.Stream(t.Context(), events.StreamChanges)
	testkit.Must(t, err)
	raw, err := stream.GetLastMsgForSubject(t.Context(), own)
	if err != nil || string(raw.Data) != "first" {
		t.Errorf("what was stored before is gone: %v", err)
	}
	if _, err := stream.GetLastMsgForSubject(t.Context(), "keyturn.v1.prod.rollout.shop.deployment-web"); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("the watcher has published an outcome: %v", err)
	}
}
