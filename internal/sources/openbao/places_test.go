package openbao

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// crowd is a receiver of the lines of two stores, without a network.
type crowd struct {
	one, two *intake
	handler  http.Handler
}

// newCrowd returns one in which the store two has room for lines, and the store one for those about that many paths.
func newCrowd(t *testing.T, room int) *crowd {
	t.Helper()
	c := &crowd{one: newIntake(t, room), two: newIntake(t, maxLooks)}
	c.one.store, c.two.store = "one", "two"
	tokens, err := newBearers(write(t, "tokens", "one "+goodToken+"\ntwo "+goodToken), []string{"one", "two"})
	if err != nil {
		t.Fatal(err)
	}
	receiver := &httpReceiver{intakes: map[string]*intake{"one": c.one, "two": c.two}, bearers: tokens}
	c.handler = receiver.handler()
	return c
}

// post returns the status of the answer.
func (c *crowd) post(t *testing.T, store, encoding string, body io.Reader) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/audit/"+store, body)
	request.Header.Set("Authorization", "Bearer "+goodToken)
	request.Header.Set("Content-Encoding", encoding)
	answer := httptest.NewRecorder()
	c.handler.ServeHTTP(answer, request)
	return answer.Code
}

func TestShippersWithoutRoomCostNobodyElseALine(t *testing.T) {
	c := newCrowd(t, 0)
	for range 2 * maxBodies {
		if got := c.post(t, "one", "", bytes.NewReader(bodyOf(2))); got != http.StatusServiceUnavailable {
			t.Errorf("status %d for a shipper, want 503", got)
		}
	}
	if got := c.post(t, "two", "", bytes.NewReader(bodyOf(1))); got != http.StatusNoContent || len(c.two.taken()) != 1 {
		t.Errorf("status %d for the device of the other store, want its line taken", got)
	}
	clear(c.one.looks.waiting)
	if got := c.post(t, "one", "", bytes.NewReader(bodyOf(1))); got != http.StatusNoContent || len(c.one.taken()) != 1 {
		t.Errorf("status %d for the device of the same store, once there is room, want its line taken", got)
	}
	if len(c.one.polls)+len(c.two.polls) > 0 {
		t.Error("a poll is requested, as for lines that are lost")
	}
}

func TestABodyWithoutAPlaceIsSentAgainByWhoeverCan(t *testing.T) {
	line := string(bodyOf(1))
	tests := []struct {
		name, encoding string
		body           io.Reader
		want           int
		polls          int
	}{
		{name: "the line of a device", body: strings.NewReader(line), want: http.StatusNoContent, polls: 1},
		{name: "with its end", body: strings.NewReader(line + "\n"), want: http.StatusNoContent, polls: 1},
		{name: "in parts", body: io.MultiReader(strings.NewReader(line[:9]), strings.NewReader(line[9:]), strings.NewReader("\n")), want: http.StatusNoContent, polls: 1},
		{name: "that stops", body: io.MultiReader(strings.NewReader(line[:9]), failingReader{}), want: http.StatusNoContent, polls: 1},
		{name: "the lines of a shipper", body: bytes.NewReader(bodyOf(2)), want: http.StatusServiceUnavailable},
		{name: "in parts", body: io.MultiReader(strings.NewReader(line), strings.NewReader("\n"), strings.NewReader(line)), want: http.StatusServiceUnavailable},
		{name: "compressed", encoding: "gzip", body: strings.NewReader("\x1f\x8b"), want: http.StatusServiceUnavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newCrowd(t, 10)
			for c.one.bodies.take() {
			}
			if got := c.post(t, "one", test.encoding, test.body); got != test.want || len(c.one.polls) != test.polls {
				t.Errorf("status %d, %d polls; want %d, %d", got, len(c.one.polls), test.want, test.polls)
			}
		})
	}
}

// failingReader is a body whose sender hangs up.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
