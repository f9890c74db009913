package openbao

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeConnection is a connection from a peer that is only closed.
type fakeConnection struct {
	net.Conn
	peer   string
	closed bool
}

func (c *fakeConnection) RemoteAddr() net.Addr {
	address, err := net.ResolveTCPAddr("tcp", c.peer)
	if err != nil {
		return &net.UnixAddr{Name: "@"}
	}
	return address
}

func (c *fakeConnection) Close() error { c.closed = true; return nil }

func (c *fakeConnection) Read(p []byte) (int, error) { p[0] = '\n'; return 1, nil }

func TestTheConnectionIdleLongestMakesRoom(t *testing.T) {
	// several returns the connections from a peer, by number.
	several := func(peer string, n int) []string {
		var peers []string
		for port := range n {
			peers = append(peers, fmt.Sprintf("%s:%d", peer, port+1))
		}
		return peers
	}
	tests := []struct {
		name string
		open []string // peers
		read []int    // the connections that are read, in order
		next string
		want []string // the peers whose connections are closed
	}{
		{name: "none while there is room", open: several("10.0.0.1", maxPeerConnections-1), next: "10.0.0.1:99"},
		{name: "one of the same peer", open: append(several("10.0.0.1", maxPeerConnections), "10.0.0.2:1"), next: "10.0.0.1:99", want: []string{"10.0.0.1:1"}},
		{
			name: "one of the same peer that was read less lately", open: several("10.0.0.1", maxPeerConnections), read: []int{0, 1, 0},
			next: "10.0.0.1:99", want: []string{"10.0.0.1:3"},
		},
		{name: "none of a peer for another one", open: several("10.0.0.1", maxPeerConnections), next: "10.0.0.2:1"},
		{name: "one of a peer on IPv6", open: several("[fd00::1]", maxPeerConnections), next: "[fd00::1]:99", want: []string{"[fd00::1]:1"}},
		{name: "one of a peer on a unix socket", open: slices.Repeat([]string{"unix"}, maxPeerConnections), next: "unix", want: []string{"unix"}},
		{
			name: "one of those with the most where all are taken",
			open: slices.Concat([]string{"10.0.1.1:1"}, several("10.0.0.1", maxPeerConnections-1), several("10.0.0.2", maxPeerConnections),
				several("10.0.0.3", maxPeerConnections), several("10.0.0.4", maxPeerConnections)),
			next: "10.0.1.2:1", want: []string{"10.0.0.2:1"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			among := newConnections()
			fakes, opened := make([]*fakeConnection, len(test.open)), make([]*lineConnection, len(test.open))
			for i, peer := range test.open {
				fakes[i] = &fakeConnection{peer: peer}
				opened[i], _ = among.add(fakes[i])
			}
			for _, i := range test.read {
				if _, err := opened[i].Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
			if _, closed := among.add(&fakeConnection{peer: test.next}); closed != (test.want != nil) {
				t.Errorf("one was closed: %t", closed)
			}
			var got []string
			for _, fake := range fakes {
				if fake.closed {
					got = append(got, fake.peer)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("closed (-want +got):\n%s", diff)
			}
			if want := len(test.open) + 1 - len(test.want); len(among.open) != want {
				t.Errorf("%d are open, want %d", len(among.open), want)
			}
		})
	}
}

func TestALineMustEndInTime(t *testing.T) {
	line := strings.TrimSpace(string(samples(t, "openbao-2.6.2.jsonl")["response create secret/data/shop/db"]))
	other := strings.Replace(line, `"id":"b79f`, `"id":"0000`, 1)
	type step struct {
		text string
		wait time.Duration // after the text
	}
	tests := []struct {
		name  string
		steps []step
		ended bool
		used  int
	}{
		{name: "nothing is sent for a day", steps: []step{{wait: 24 * time.Hour}}},
		{name: "nothing is sent after a line for a day", steps: []step{{text: line + "\n", wait: 24 * time.Hour}}, used: 1},
		{name: "a line in parts", steps: []step{{text: line[:10], wait: lineTimeout - time.Second}, {text: line[10:] + "\n", wait: time.Hour}}, used: 1},
		{name: "half a line", steps: []step{{text: line[:10], wait: lineTimeout + time.Second}}, ended: true},
		{
			name:  "half a line, byte after byte",
			steps: slices.Concat(slices.Repeat([]step{{text: "x", wait: time.Second}}, int(lineTimeout/time.Second)), []step{{wait: 2 * time.Second}}), ended: true,
		},
		{
			name: "each line in parts", used: 2, steps: []step{
				{text: line[:10], wait: lineTimeout - time.Second},
				{text: line[10:] + "\n" + other[:10], wait: lineTimeout - time.Second},
				{text: other[10:] + "\n", wait: time.Minute},
			},
		},
		{name: "a line and half of one", steps: []step{{text: line + "\n{", wait: lineTimeout + time.Second}}, ended: true, used: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				taking := newIntake(t, 10)
				receiver := &socketReceiver{intake: taking, log: taking.status.log}
				client, server := net.Pipe()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				added, _ := newConnections().add(server)
				go func() { defer close(ended); receiver.receive(ctx, added) }()
				for _, one := range test.steps {
					if one.text != "" {
						// The pipe is closed where the connection has ended.
						if _, err := io.WriteString(client, one.text); err != nil && !test.ended {
							t.Fatal(err)
						}
					}
					after(one.wait)
				}
				select {
				case <-ended:
					if !test.ended {
						t.Error("the connection has ended")
					}
				default:
					if test.ended {
						t.Error("the connection is still open")
					}
				}
				if got := len(taking.spool); got != test.used {
					t.Errorf("%d lines were used, want %d", got, test.used)
				}
				if asked := len(taking.polls) == 1; asked != test.ended {
					t.Errorf("a poll is requested: %t", asked)
				}
				cancel()
				<-ended
				client.Close()
			})
		})
	}
}
