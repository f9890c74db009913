package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// echo starts a server on loopback that sends everything back, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				_, _ = io.Copy(conn, conn)
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

func TestALinkIsSilencedAndCut(t *testing.T) {
	l, err := newLink(t.Context(), echo(t))
	testkit.Must(t, err)
	defer l.close()
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.address())
	}
	conn, err := dial(t.Context())
	testkit.Must(t, err)
	defer conn.Close()
	testkit.Must(t, ask(conn))

	l.mute()
	answered := make(chan error, 1)
	go func() { answered <- ask(conn) }()
	select {
	case err := <-answered:
		t.Errorf("a silent link answers: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	l.unmute()
	if err := <-answered; err != nil {
		t.Errorf("what was sent meanwhile is lost: %v", err)
	}

	passes := func(ctx context.Context) bool {
		again, err := dial(ctx)
		if err != nil {
			return false
		}
		defer again.Close()
		return ask(again) == nil
	}
	l.cut()
	if ask(conn) == nil || passes(t.Context()) {
		t.Error("a link that is cut passes on")
	}
	l.mend()
	testkit.Await(t, "the link passes on again", passes)
}

// ask sends a line and waits for it to come back.
func ask(conn net.Conn) error {
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		return err
	}
	_, err := bufio.NewReader(conn).ReadString('\n')
	return err
}
