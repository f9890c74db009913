package events

import (
	"bufio"
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

// lossyDialer makes connections that lose messages, as a route of a cluster may that breaks.
type lossyDialer struct {
	*testing.T
	// loses reports whether a message is lost, which has come with a line and a payload.
	loses func(line []string, payload string) bool
	lost  chan string
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
			if fields[0] == "HMSG" && d.loses(fields, string(payload)) {
				d.lost <- line
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

// bus returns a bus over a connection that loses messages.
func (d *lossyDialer) bus(s *testServer) *Bus {
	d.Helper()
	nc, err := Connect(d.Context(), ConnectOptions{URL: s.ClientURL(), Cluster: testCluster, Name: d.Name()}, nats.SetCustomDialer(d))
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(nc.Close)
	b, err := Open(d.Context(), nc, testCluster, nil)
	if err != nil {
		d.Fatal(err)
	}
	return b
}

// It waited for ever: the server sends nothing again, be it that it has sent everything, be it that it has lost the consumer.
func TestAReadingThatHasMissedAMessageEndsWithAnError(t *testing.T) {
	s := startServer(t)
	b := s.bus()
	for i := range 3 {
		mustPublish(t, b, version(fmt.Sprintf("s%d", i), "1"), 0)
	}
	// The reply subject of what a consumer sends ends with the number of the messages that follow.
	dialer := &lossyDialer{T: t, lost: make(chan string, 1), loses: func(line []string, _ string) bool {
		return strings.HasPrefix(line[3], "$JS.ACK.") && strings.HasSuffix(line[3], ".0")
	}}
	lossy := dialer.bus(s)
	lossy.stall, lossy.lostAfter = 50*time.Millisecond, time.Second
	read, ended := 0, make(chan error, 1)
	go func() {
		ended <- lossy.State(t.Context(), SourceFilters(testCluster), func(Stored) error { read++; return nil })
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, errLost) || !IsSilence(err) {
			t.Errorf("the error is %v, want one that says that messages were lost, and that is worth another try", err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("the reading does not end")
	}
	if read != 2 || len(dialer.lost) != 1 {
		t.Errorf("%d of 3 messages were read, and %d lost, want 2 and 1", read, len(dialer.lost))
	}
}
