package openbao

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
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
	tokens, err := newBearers(tokensOf(t, "one "+goodToken+"\ntwo "+goodToken), []string{"one", "two"})
	if err != nil {
		t.Fatal(err)
	}
	receiver := &httpReceiver{intakes: map[string]*intake{"one": c.one, "two": c.two}, bearers: tokens}
	c.handler = receiver.handler()
	return c
}

// post returns the status of the answer.
func (c *crowd) post(t *testing.T, store string, body io.Reader) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/audit/"+store, body)
	request.Header.Set("Authorization", "Bearer "+goodToken)
	answer := httptest.NewRecorder()
	c.handler.ServeHTTP(answer, request)
	return answer.Code
}

func TestShippersWithoutRoomCostNobodyElseALine(t *testing.T) {
	c := newCrowd(t, 0)
	for range 2 * maxBodies {
		if got := c.post(t, "one", bytes.NewReader(bodyOf(2))); got != http.StatusServiceUnavailable {
			t.Errorf("status %d for a shipper, want 503", got)
		}
	}
	if got := c.post(t, "two", bytes.NewReader(bodyOf(1))); got != http.StatusNoContent || len(c.two.taken()) != 1 {
		t.Errorf("status %d for the device of the other store, want its line taken", got)
	}
	clear(c.one.looks.waiting)
	if got := c.post(t, "one", bytes.NewReader(bodyOf(1))); got != http.StatusNoContent || len(c.one.taken()) != 1 {
		t.Errorf("status %d for the device of the same store, once there is room, want its line taken", got)
	}
	if len(c.one.polls)+len(c.two.polls) > 0 {
		t.Error("a poll is requested, as for lines that are lost")
	}
}

func TestABodyBesideTooManyOthersIsRefusedAndPolledFor(t *testing.T) {
	for name, body := range map[string][]byte{"the line of a device": bodyOf(1), "the lines of a shipper": bodyOf(2)} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(t, 10)
			for range maxBodies {
				c.one.bodies <- struct{}{}
			}
			if got := c.post(t, "one", bytes.NewReader(body)); got != http.StatusServiceUnavailable || len(c.one.polls) != 1 {
				t.Errorf("status %d, %d polls; want 503 and one", got, len(c.one.polls))
			}
			if got := c.post(t, "two", bytes.NewReader(body)); got != http.StatusNoContent {
				t.Errorf("status %d for another store, want 204", got)
			}
			<-c.one.bodies
			if got := c.post(t, "one", bytes.NewReader(body)); got != http.StatusNoContent || len(c.one.bodies) != maxBodies-1 {
				t.Errorf("status %d once there is room, %d bodies; want 204", got, len(c.one.bodies))
			}
		})
	}
}
