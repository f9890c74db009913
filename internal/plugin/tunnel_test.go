package plugin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/keyturn/keyturn/tests/testkit"
	"github.com/keyturn/keyturn/tests/testkit/kubelet"
)

// echo returns the address of a server that sends back what it receives.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// through opens a tunnel through an API server that serves port-forwards with the given handler. It does not support websockets.
func through(t *testing.T, serve http.HandlerFunc) (*tunnel, error) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/namespaces/keyturn-system/pods/keyturn-actuator-0/portforward", serve)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	client, err := kubernetes.NewForConfig(config)
	testkit.Must(t, err)
	opened, err := openTunnel(t.Context(), &access{config: config, typed: client}, "keyturn-system", "keyturn-actuator-0", 4222)
	if err == nil {
		t.Cleanup(opened.close)
	}
	return opened, err
}

func TestATunnelForwardsConnections(t *testing.T) {
	address := echo(t)
	opened, err := through(t, func(w http.ResponseWriter, r *http.Request) { kubelet.Forward(w, r, address) })
	testkit.Must(t, err)
	for range 2 {
		conn, err := opened.Dial("tcp", "localhost:4222")
		testkit.Must(t, err)
		if _, err := io.WriteString(conn, "keyturn"); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("keyturn"))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "keyturn" {
			t.Errorf("got %q (%v)", got, err)
		}
		// NATS sets deadlines, and closes a connection that does not respond.
		if err := conn.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Error(err)
		}
		var timeout net.Error
		if _, err := conn.Read(got); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("after the deadline: %v", err)
		}
		conn.Close()
	}
}

func TestTheOpeningOfATunnelEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-ended // It never answers.
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	config := &rest.Config{Host: server.URL}
	client, err := kubernetes.NewForConfig(config)
	testkit.Must(t, err)
	if _, err := openTunnel(ctx, &access{config: config, typed: client}, "keyturn-system", "keyturn-actuator-0", 4222); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestATunnelIsClosedWhileItIsOpenedAgain(t *testing.T) {
	address := echo(t)
	var requests atomic.Int32
	again, ended := make(chan struct{}), make(chan struct{})
	opened, err := through(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			kubelet.Forward(w, r, address)
			return
		}
		close(again)
		<-ended // It never answers.
	})
	t.Cleanup(func() { close(ended) })
	testkit.Must(t, err)
	first := <-opened.first
	_ = first.Close()
	go func() {
		<-again
		opened.close()
	}()
	if _, err := opened.Dial("tcp", "localhost:4222"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want that it is closed", err)
	}
}

func TestATunnelSaysWhichRightIsMissing(t *testing.T) {
	const message = `pods "keyturn-actuator-0" is forbidden: User "ada" cannot create resource "pods/portforward"`
	_, err := through(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, message, http.StatusForbidden) })
	wantErrorWith(t, err, "no permission to create pods/portforward in namespace keyturn-system:")
}
