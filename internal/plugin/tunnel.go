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

// tunnelTimeout bounds how long it may take to open a tunnel. It is as long as commands wait for NATS. The library itself has no limit.
const tunnelTimeout = 10 * time.Second

// tunnel forwards connections to a port of a pod through the API server, like kubectl port-forward, but does not listen, so that no one else on
// the machine can use it. It implements the dialer of a NATS connection.
type tunnel struct {
	dialer httpstream.Dialer
	port   string

	closed chan struct{}

	mu   sync.Mutex
	conn httpstream.Connection
	// requests counts the connections that were opened.
	requests int
	copying  sync.WaitGroup
}

// openTunnel returns a tunnel to a pod after the API server has accepted it.
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
	// API servers before 1.30 and some proxies do not support websockets for this.
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	dialer := portforward.NewFallbackDialerForStreaming(sockets, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	t := &tunnel{dialer: dialer, port: strconv.Itoa(port), closed: make(chan struct{})}
	if _, err := t.connection(ctx); err != nil {
		if strings.Contains(err.Error(), "is forbidden") { // the error has no type of its own
			return nil, right{"create", "pods/portforward", namespace}.missing()
		}
		return nil, fmt.Errorf("forwarding port %d of pod %s in namespace %s: %w", port, pod, namespace, err)
	}
	return t, nil
}

// connection returns the connection to the API server, a new one if the last was lost. It returns when ctx is done or the tunnel is closed. The
// library takes no context, so the dialing continues until the API server responds; the connection is then closed.
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

// live returns the connection to the API server, or nil if there is none or it was lost.
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

// take makes conn the connection of the tunnel, or closes it if the tunnel is closed. It returns conn.
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
	// A connection of NATS needs deadlines, which streams do not have, but pipes do.
	local, remote := net.Pipe()
	forwarded := &forwardedConn{Conn: local, failed: make(chan struct{})}
	t.copying.Go(func() {
		_, _ = io.Copy(data, remote)
		_ = data.Reset()
	})
	t.copying.Go(func() {
		_, _ = io.Copy(remote, data)
		_ = data.Reset() // Unsent data would prevent the other stream from ending.
		if message, err := io.ReadAll(failures); err == nil && len(message) > 0 {
			forwarded.failure = errors.New(strings.TrimSpace(string(message)))
			t.drop(conn) // The pod may have been replaced. Then everything on this connection fails.
		}
		conn.RemoveStreams(data, failures)
		close(forwarded.failed)
		_ = remote.Close()
	})
	return forwarded, nil
}

// drop closes a connection to the API server, so that the next connection to the port uses a new one.
func (t *tunnel) drop(conn httpstream.Connection) {
	t.mu.Lock()
	if t.conn == conn {
		t.conn = nil
	}
	t.mu.Unlock()
	_ = conn.Close()
}

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

// forwardedConn is a connection to a pod. When it ends, Read returns the error that the kubelet has reported, if any.
type forwardedConn struct {
	net.Conn
	// failed is closed when failure no longer changes.
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
