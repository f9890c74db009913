package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnelTimeout bounds how long a tunnel is opened, as the commands wait for NATS. The library has no limit of its own.
const tunnelTimeout = 10 * time.Second

// tunnel forwards connections to a port of a pod through the API server, like kubectl port-forward, but listens nowhere: nobody else on the machine
// can use it. It is the dialer of a NATS connection.
type tunnel struct {
	dialer httpstream.Dialer
	port   string

	// closed is closed with the tunnel.
	closed chan struct{}

	mu   sync.Mutex
	conn httpstream.Connection
	// requests counts the connections that were opened.
	requests int
	copying  sync.WaitGroup
}

// openTunnel returns a tunnel to a pod, once the API server lets it through.
func openTunnel(ctx context.Context, a *access, namespace, pod string, port int) (*tunnel, error) {
	url := a.typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	sockets, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, a.config)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(a.config)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	// API servers before 1.30, and some proxies, have no websockets for it.
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	dialer := portforward.NewFallbackDialerForStreaming(sockets, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	t := &tunnel{dialer: dialer, port: strconv.Itoa(port), closed: make(chan struct{})}
	if _, err := t.connection(ctx); err != nil {
		if strings.Contains(err.Error(), "is forbidden") { // It has no other type.
			return nil, right{"create", "pods/portforward", namespace}.missing()
		}
		return nil, fmt.Errorf("forwarding port %d of pod %s in namespace %s: %w", port, pod, namespace, err)
	}
	return t, nil
}

// connection returns the connection to the API server, a new one if the last was lost. It returns when ctx is done or the tunnel is closed, though
// the library, which takes no context, goes on until the API server answers. That is then closed.
func (t *tunnel) connection(ctx context.Context) (httpstream.Connection, error) {
	if conn := t.live(); conn != nil {
		return conn, nil
	}
	type dialed struct {
		conn httpstream.Connection
		err  error
	}
	answer := make(chan dialed)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		conn, _, err := t.dialer.Dial(portforward.PortForwardProtocolV1Name)
		select {
		case answer <- dialed{conn, err}:
		case <-ended:
			if err == nil {
				_ = conn.Close()
			}
		}
	}()
	select {
	case is := <-answer:
		if is.err != nil {
			return nil, is.err
		}
		return t.take(is.conn), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("the API server does not answer: %w", ctx.Err())
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

// live returns the connection to the API server, nil if there is none or it was lost.
func (t *tunnel) live() httpstream.Connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn == nil {
		return nil
	}
	select {
	case <-t.conn.CloseChan():
		return nil
	default:
		return t.conn
	}
}

// take has a connection be that of the tunnel, and returns it, closed if the tunnel is.
func (t *tunnel) take(conn httpstream.Connection) httpstream.Connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.closed:
		_ = conn.Close()
	default:
		t.conn = conn
	}
	return conn
}

// Dial opens a connection to the port, whatever the address.
func (t *tunnel) Dial(_, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tunnelTimeout)
	defer cancel()
	conn, err := t.connection(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.requests++
	headers := http.Header{}
	headers.Set(corev1.PortHeader, t.port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(t.requests))
	t.mu.Unlock()
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := conn.CreateStream(headers)
	if err != nil {
		t.drop(conn)
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	_ = failures.Close() // Only the other side writes to it.
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		t.drop(conn)
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	// A stream has no deadlines, as a connection of NATS needs. A pipe has.
	local, remote := net.Pipe()
	forwarded := &forwardedConn{Conn: local, failed: make(chan struct{})}
	t.copying.Go(func() {
		_, _ = io.Copy(data, remote)
		_ = data.Reset()
	})
	t.copying.Go(func() {
		_, _ = io.Copy(remote, data)
		_ = data.Reset() // What was not sent would keep the other stream from ending.
		if message, err := io.ReadAll(failures); err == nil && len(message) > 0 {
			forwarded.failure = errors.New(strings.TrimSpace(string(message)))
			t.drop(conn) // The pod may have been replaced, and then everything on this connection fails.
		}
		conn.RemoveStreams(data, failures)
		close(forwarded.failed)
		_ = remote.Close()
	})
	return forwarded, nil
}

// drop ends a connection to the API server, so that the next one to the port is over another.
func (t *tunnel) drop(conn httpstream.Connection) {
	t.mu.Lock()
	if t.conn == conn {
		t.conn = nil
	}
	t.mu.Unlock()
	_ = conn.Close()
}

// close ends all connections.
func (t *tunnel) close() {
	t.mu.Lock()
	conn := t.conn
	select {
	case <-t.closed:
	default:
		close(t.closed)
	}
	t.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
	t.copying.Wait()
}

// forwardedConn is a connection to a pod. It ends with what the kubelet says about it.
type forwardedConn struct {
	net.Conn
	// failed is closed once failure is what it stays.
	failed  chan struct{}
	failure error
}

// Read reads what the pod sends.
func (c *forwardedConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if errors.Is(err, io.EOF) {
		<-c.failed
		if c.failure != nil {
			return n, c.failure
		}
	}
	return n, err
}
