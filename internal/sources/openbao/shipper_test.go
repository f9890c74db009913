package openbao

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// shipper posts the new lines of a file as Vector and Fluent Bit do: whole lines, many in one body, repeated until the answer is a success.
type shipper struct {
	t      *testing.T
	client *http.Client
	file   string
	offset int
	// format returns a line as it is posted.
	format func(line []byte) []byte
	gzip   bool
}

// body returns what is to be posted next, and the offset behind it.
func (s *shipper) body() (body []byte, behind int) {
	s.t.Helper()
	content, err := os.ReadFile(s.file)
	must(s.t, err)
	whole := content[s.offset : bytes.LastIndexByte(content, '\n')+1]
	for line := range bytes.Lines(whole) {
		body = append(append(body, s.format(bytes.TrimSpace(line))...), '\n')
	}
	if !s.gzip {
		return body, s.offset + len(whole)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(body); err != nil {
		s.t.Fatal(err)
	}
	must(s.t, writer.Close())
	return packed.Bytes(), s.offset + len(whole)
}

// post posts a body and returns the status of the answer.
func (s *shipper) post(body []byte, url string) int {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, url, bytes.NewReader(body))
	must(s.t, err)
	request.Header.Set("Authorization", "Bearer "+goodToken)
	if s.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := s.client.Do(request)
	must(s.t, err)
	defer response.Body.Close()
	return response.StatusCode
}

// ship posts what is new.
func (s *shipper) ship(url string) {
	s.t.Helper()
	body, behind := s.body()
	if status := s.post(body, url); status != http.StatusNoContent {
		s.t.Fatalf("status %d", status)
	}
	s.offset = behind
}

func raw(line []byte) []byte { return line }

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

func TestAShipperOfLogsDeliversTheLinesOfAFile(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	create, update, read := lines["response create secret/data/shop/db"], lines["response update secret/data/shop/db"], lines["response read secret/data/shop/db"]
	for _, test := range []struct {
		name   string
		format func([]byte) []byte
		gzip   bool
	}{
		{name: "raw", format: raw},
		{name: "compressed", format: parsed, gzip: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := startReceiver(t, askOnly, nil)
			url := "http://" + r.address() + "/v1/audit/main"
			s := &shipper{t: t, client: newClientOf(t, nil), file: filepath.Join(t.TempDir(), "audit.log"), format: test.format, gzip: test.gzip}
			log := func(parts ...[]byte) {
				file, err := os.OpenFile(s.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					_, err = file.Write(bytes.Join(parts, nil))
				}
				must(t, err)
				file.Close()
			}
			newline := []byte("\n")
			log(read, newline, create, newline, update[:100])
			first, _ := s.body()
			looked := func() {
				t.Helper()
				if o := r.next(t); o.Path.Path != "shop/db" || o.Version != 2 {
					t.Errorf("observed %+v, want what the store has", o)
				}
			}
			s.ship(url)
			looked()
			log(update[100:], newline)
			s.ship(url)
			looked()
			// What was delivered is delivered again if the answer was lost.
			if status := s.post(first, url); status != http.StatusNoContent {
				t.Errorf("status %d", status)
			}
			if got := r.lines(t, used); got != 2 || len(r.sink) > 0 {
				t.Errorf("%d lines were used, want 2", got)
			}
			// The body ends within its last line, and what is left out is posted again.
			s.offset = 0
			log(bytes.Replace(update, []byte(`"id":"8aba8637`), []byte(`"id":"00000000`), 1), newline)
			all, behind := s.body()
			if status := s.post(all[:len(all)-20], url); s.gzip && status != http.StatusBadRequest || !s.gzip && status != http.StatusNoContent {
				t.Errorf("half a body: status %d", status)
			}
			before := r.lines(t, used)
			if status := s.post(all, url); status != http.StatusNoContent {
				t.Errorf("status %d", status)
			}
			s.offset = behind
			if got := r.lines(t, used); before > 3 || got != 3 {
				t.Errorf("%d lines were used, want 3", got)
			}
		})
	}
}

func TestTheAuditReceiverRefusesWhatItCannotDecompress(t *testing.T) {
	r := startReceiver(t, askOnly, nil)
	for encoding, want := range map[string]int{"zstd": http.StatusUnsupportedMediaType, "gzip": http.StatusBadRequest, "identity": http.StatusNoContent} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.address()+"/v1/audit/main", bytes.NewReader([]byte("{}\n")))
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+goodToken)
		request.Header.Set("Content-Encoding", encoding)
		response, err := newClientOf(t, nil).Do(request)
		must(t, err)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", encoding, response.StatusCode, want)
		}
	}
}

// TestASmallBodyDoesNotDecompressWithoutEnd posts a small body that decompresses to more than is read.
func TestASmallBodyDoesNotDecompressWithoutEnd(t *testing.T) {
	r := startReceiver(t, askOnly, nil)
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	must(t, err)
	zeros := make([]byte, 1<<20)
	for range maxBody>>20 + 1 {
		if _, err := writer.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	must(t, writer.Close())
	s := &shipper{t: t, client: newClientOf(t, nil), gzip: true}
	if status := s.post(packed.Bytes(), "http://"+r.address()+"/v1/audit/main"); status != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", status)
	}
}
