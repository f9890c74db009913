package events

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/keyturn/keyturn/tests/testkit"
)

// lossyDialer makes connections that lose the last message that a consumer sends, as a route of a cluster may that breaks.
type lossyDialer struct {
	*testing.T
	lost chan string
}

func (d *lossyDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(d.Context(), network, address)
	if err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(d.copy(writer, bufio.NewReader(conn))) }()
	return &lossyConn{Conn: conn, reader: reader}, nil
}

// copy copies what the server sends, message by message.
func (d *lossyDialer) copy(to io.Writer, from *bufio.Reader) error {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return err
		}
		whole := line
		// HMSG <subject> <sid> [reply] <size of the header> <size>, or MSG <subject> <sid> [reply] <size>
		if fields := strings.Fields(line); fields[0] == "HMSG" || fields[0] == "MSG" {
			size, err := strconv.Atoi(fields[len(fields)-1])
			if err != nil {
				return err
			}
			payload := make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(from, payload); err != nil {
				return err
			}
			// The reply subject of what a consumer sends ends with the number of the messages that follow.
			if fields[0] == "HMSG" && strings.HasPrefix(fields[3], "$JS.ACK.") && strings.HasSuffix(fields[3], ".0") {
				d.lost <- fields[3]
				continue
			}
			whole += string(payload)
		}
		if _, err := io.WriteString(to, whole); err != nil {
			return err
		}
	}
}

type lossyConn struct {
	net.Conn
	reader *io.PipeReader
}

func (c *lossyConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

func (c *lossyConn) Close() error {
	return errors.Join(c.reader.Close(), c.Conn.Close())
}

// Otherwise it would wait forever: the server does not resend anything, whether it has sent everything or has lost the consumer.
func TestAReadingThatHasMissedAMessageEndsWithAnError(t *testing.T) {
	s := sharedServer(t)
	b := s.bus()
	for i := range 3 {
		mustPublish(t, b, version(fmt.Sprintf("s%d", i), "1"), 0)
	}
	dialer := &lossyDialer{T: t, lost: make(chan string, 1000)}
	nc, err := Connect(t.Context(), ConnectOptions{URL: s.url(), Cluster: testCluster, Name: t.Name()}, nats.SetCustomDialer(dialer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	lossy, err := Open(t.Context(), nc, testCluster, nil)
	if err != nil {
		t.Fatal(err)
	}
	lossy.stall, lossy.lostAfter = 500*time.Millisecond, time.Second
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	read := 0
	for again := true; again; again = read < 2 && !t.Failed() { // A slow one ends before the first message comes.
		read = 0
		err := lossy.State(ctx, SourceFilters(testCluster), func(Stored) error { read++; return nil })
		if !errors.Is(err, errLost) || !IsSilence(err) {
			t.Errorf("the error is %v, want one that says that messages were lost, and that is worth another try", err)
		}
	}
	if read != 2 || len(dialer.lost) == 0 {
		t.Errorf("%d of 3 messages were read, and %d lost, want 2 and at least 1", read, len(dialer.lost))
	}
}
