package openbao

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

// shipper posts the new lines of a file as Vector and Fluent Bit do: whole lines, many in one body, which is compressed.
type shipper struct {
	t      *testing.T
	client *http.Client
	file   string
	offset int
}

// ship posts what is new.
func (s *shipper) ship(url string) {
	s.t.Helper()
	content, err := os.ReadFile(s.file)
	testkit.Must(s.t, err)
	whole := content[s.offset : bytes.LastIndexByte(content, '\n')+1]
	var body []byte
	for line := range bytes.Lines(whole) {
		body = append(append(body, parsed(bytes.TrimSpace(line))...), '\n')
	}
	if status := s.post(packed(s.t, body), "gzip", url); status != http.StatusNoContent {
		s.t.Fatalf("status %d", status)
	}
	s.offset += len(whole)
}

// post posts a body in an encoding, and returns the status of the answer.
func (s *shipper) post(body []byte, encoding, url string) int {
	s.t.Helper()
	status, _ := postAs(s.t, s.client, url, "Bearer "+goodToken, encoding, bytes.NewReader(body))
	return status
}

// packed returns a body in gzip.
func packed(t *testing.T, body []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buffer, gzip.BestSpeed)
	testkit.Must(t, err)
	_, err = writer.Write(body)
	testkit.Must(t, err)
	testkit.Must(t, writer.Close())
	return buffer.Bytes()
}

// parsed returns a line as a shipper that decodes lines writes it: the same JSON with its fields in another order.
func parsed(line []byte) []byte {
	var record map[string]any
	if err := json.Unmarshal(line, &record); err != nil {
		return line
	}
	encoded, err := json.Marshal(record)
	if err != nil {
		return line
	}
	return encoded
}

func TestALogShipperMayCompressAndSendAgain(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	body := bytes.Join([][]byte{
		lines["response read secret/data/shop/db"], lines["response create secret/data/shop/db"], lines["response update secret/data/shop/db"], nil,
	}, []byte("\n"))
	for _, test := range []struct {
		encoding string
		body     []byte
		half     int // the status of a body that ends within its last line
	}{
		{encoding: "identity", body: body, half: http.StatusNoContent},
		{encoding: "gzip", body: packed(t, body), half: http.StatusBadRequest},
	} {
		t.Run(test.encoding, func(t *testing.T) {
			r := startReceiver(t)
			s, url := &shipper{t: t, client: newClientOf(t, nil)}, "http://"+r.address()+"/v1/audit/main"
			if status := s.post(test.body[:len(test.body)-20], test.encoding, url); status != test.half {
				t.Errorf("half a body: status %d, want %d", status, test.half)
			}
			for range 2 { // What was delivered is delivered again if the answer was lost.
				if status := s.post(test.body, test.encoding, url); status != http.StatusNoContent {
					t.Errorf("status %d, want 204", status)
				}
				if got := r.lines(t, used); got != 2 {
					t.Errorf("%d lines were used, want 2", got)
				}
			}
			if o := r.next(t); o.Path.Path != "shop/db" || o.Version != 2 {
				t.Errorf("observed %+v, want what the store has", o)
			}
		})
	}
}
