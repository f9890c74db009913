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

// natsTimeout bounds how long a command waits for a tunnel to NATS, for a connection and for a response.
const natsTimeout = 10 * time.Second

// tunnel forwards connections to a port of a pod through the API server, like kubectl port-forward, but does not listen, so that no one else on
// the machine can use it. It implements the dialer of a NATS connection.
type tunnel struct {
	dialer httpstream.Dialer
	port   string
	// first contains the connection to the API server with which the tunnel was opened, until Dial uses it.
	first chan httpstream.Connection

	closed  chan struct{}
	end     func()
	copying sync.WaitGroup
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
	t := &tunnel{dialer: dialer, port: strconv.Itoa(port), first: make(chan httpstream.Connection, 1), closed: make(chan struct{})}
	t.end = sync.OnceFunc(func() { close(t.closed) })
	conn, err := t.connect(ctx)
	if err != nil {
		if strings.Contains(err.Error(), "is forbidden") { // the error has no type of its own
			return nil, right{"create", "pods/portforward", "", namespace}.missing()
		}
		return nil, fmt.Errorf("forwarding port %d of pod %s in namespace %s: %w", port, pod, namespace, err)
	}
	t.first <- conn
	return t, nil
}

// connect connects to the API server. It returns when ctx is done or the tunnel is closed. The library takes no context, so it continues to dial
// until the API server responds; the connection is then closed.
func (t *tunnel) connect(ctx context.Context) (httpstream.Connection, error) {
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
		return is.conn, is.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the API server does not answer: %w", ctx.Err())
	case <-t.closed:
		return nil, net.ErrClosed
	}
}

// Dial opens a connection to the port, whatever the address. Each has its own connection to the API server, because everything on an earlier one
// fails if the pod was replaced.
func (t *tunnel) Dial(_, _ string) (net.Conn, error) {
	var conn httpstream.Connection
	select {
	case conn = <-t.first:
	default:
		ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
		defer cancel()
		var err error
		if conn, err = t.connect(ctx); err != nil {
			return nil, err
		}
	}
	headers := http.Header{}
	headers.Set(corev1.PortHeader, t.port)
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := conn.CreateStream(headers)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	_ = failures.Close() // Only the other side writes to it.
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		_ = conn.Close()
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
		}
		close(forwarded.failed)
		_ = remote.Close()
	})
	t.copying.Go(func() {
		select {
		case <-t.closed:
		case <-forwarded.failed:
		}
		_ = conn.Close()
	})
	return forwarded, nil
}

func (t *tunnel) close() {
	t.end()
	select {
	case conn := <-t.first:
		_ = conn.Close()
	default:
	}
	t.copying.Wait()
}

// forwardedConn is a connection to a pod. When it ends, Read returns the error that the kubelet has reported, if any.
type forwardedConn struct {
	net.Conn
	// failed is closed when failure does not change any more.
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
