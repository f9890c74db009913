package testkit

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
)

func TestOnlyForGoroutinesOfNATSThereIsPatience(t *testing.T) {
	before := goleak.IgnoreCurrent()
	nats, err := server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	t.Cleanup(func() {
		nats.Shutdown()
		nats.WaitForShutdown()
	})
	if err := goleak.Find(before); err == nil || !onlyNATS(err.Error()) {
		t.Errorf("of a server are found: %v", err)
	}
	end := make(chan struct{})
	defer close(end)
	go func() { <-end }()
	if err := goleak.Find(before); err == nil || onlyNATS(err.Error()) {
		t.Errorf("of a server and of ours are found: %v", err)
	}
}
