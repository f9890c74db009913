package main

import (
	"bufio"
	"context"
	"net"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// echo starts a server on loopback that sends each line back, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				if _, err := conn.Write(append(lines.Bytes(), '\n')); err != nil {
					break
				}
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

func TestLink(t *testing.T) {
	l, err := newLink(t.Context(), echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	conn := dial(t, l)
	if err := ask(conn); err != nil {
		t.Fatal(err)
	}

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

	l.cut()
	if err := ask(conn); err == nil {
		t.Error("a connection has outlived the cut")
	}
	conn.Close()
	if refused, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.address()); err == nil {
		if ask(refused) == nil {
			t.Error("a link that is cut passes on")
		}
		refused.Close()
	}
	l.mend()
	testkit.Await(t, "the link passes on again", func(ctx context.Context) bool {
		again, err := new(net.Dialer).DialContext(ctx, "tcp", l.address())
		if err != nil {
			return false
		}
		defer again.Close()
		return ask(again) == nil
	})
}

func dial(t *testing.T, l *link) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.address())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// ask sends a line and waits for it to come back.
func ask(conn net.Conn) error {
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		return err
	}
	_, err := bufio.NewReader(conn).ReadString('\n')
	return err
}
