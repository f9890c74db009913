package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestTheCaseOfKeysIsIgnored(t *testing.T) {
	header, data := message(t, change())
	other := headers{}
	for key, values := range header {
		other[strings.ToUpper(key)] = values
	}
	got, err := NewStored(change().Subject(), 1, testTime, other, data).Change()
	testkit.Must(t, err)
	testkit.WantEqual(t, "difference", change(), got)
}

func TestNoMessageIsMadeOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		alter  func(*Stored)
		reason string
	}{
		{"what is no event", func(s *Stored) { *s = NewStored("s", 1, testTime, nil, nil) }, ReasonMalformed},
		{"a control character", func(s *Stored) { s.envelope.attributes[0] = field{"x", "a\r\nNats-Rollup: all"} }, ReasonMalformed},
		{"no id", func(s *Stored) { s.envelope.attributes[0] = field{"id", ""} }, ReasonMalformed},
		{"a subject with space around it", func(s *Stored) { s.envelope.attributes[0] = field{"subject", " s"} }, ReasonMalformed},
		{"too much data", func(s *Stored) { s.data = make([]byte, MaxEventSize+1) }, ReasonOversized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := encoded(t, change())
			tt.alter(&s)
			_, _, err := s.Message()
			wantReason(t, err, tt.reason)
		})
	}
}

func TestNoEventIsReadFrom(t *testing.T) {
	for _, tt := range []struct {
		name   string
		alter  func(headers)
		reason string
	}{
		{"a message without attributes", func(h headers) { clear(h) }, ReasonMalformed},
		{"structured mode", func(h headers) { h["Content-Type"] = []string{"application/cloudevents+json"} }, ReasonStructured},
		{"a later specversion", func(h headers) { h["ce-specversion"] = []string{"2.0"} }, ReasonUnknownVersion},
		{"no id", func(h headers) { delete(h, "ce-id") }, ReasonMalformed},
		{"an id of blanks", func(h headers) { h["ce-id"] = []string{"%20"} }, ReasonMalformed},
		{"a source that is not in its canonical form", func(h headers) { h["ce-source"] = []string{"K8S://prod-eu/watcher"} }, ReasonMalformed},
		{"the source of somebody else", func(h headers) { h["ce-source"] = []string{"https://example.org/orders"} }, ReasonMalformed},
		{"data that are not JSON", func(h headers) { h["ce-datacontenttype"] = []string{"text/plain"} }, ReasonMalformed},
		{"a time that leaves the calendar in UTC", func(h headers) { h["ce-time"] = []string{"9999-12-31T23:59:59-23:59"} }, ReasonMalformed},
		{"two values", func(h headers) { h["ce-id"] = []string{"1", "2"} }, ReasonMalformed},
		{"two keys that differ in case", func(h headers) { h["Ce-Id"] = []string{"2"} }, ReasonMalformed},
		{"overlong UTF-8", func(h headers) { h["ce-name"] = []string{"%C0%AF"} }, ReasonMalformed},
		{"a header that is too large", func(h headers) { h["x"] = []string{strings.Repeat("x", MaxHeaderSize)} }, ReasonOversized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header, data := message(t, change())
			tt.alter(header)
			wantReason(t, NewStored("s", 1, testTime, header, data).Err, tt.reason)
		})
	}
	wantReason(t, NewStored("s", 1, testTime, nil, make([]byte, MaxEventSize+1)).Err, ReasonOversized)
}

// FuzzNewStored checks that every decoded event is valid, and survives encoding and decoding.
func FuzzNewStored(f *testing.F) {
	f.Add("id/1", "dev.keyturn.secret.changed.v1", "k8s://c/watcher", "2026-03-14T15:09:26Z", "application/json", "name", "db", []byte("{}"))
	f.Add("%41", "t", "k8s://c/projector", "", "", "ext", "%F0%9F%94%91", []byte(nil))
	f.Add("1", "t", "k8s://c/actuator", "0001-01-01T00:00:00+23:00", "text/plain; charset=utf-8", "dataschema", "urn:x", []byte("x"))
	f.Fuzz(func(t *testing.T, id, kind, source, at, mediaType, name, value string, data []byte) {
		header := headers{"ce-specversion": {"1.0"}, "ce-id": {id}, "ce-type": {kind}, "ce-source": {source}}
		for key, text := range map[string]string{"time": at, "datacontenttype": mediaType, name: value} {
			if text != "" {
				header["ce-"+key] = []string{text}
			}
		}
		s := NewStored("s", 1, testTime, header, data)
		if s.Err != nil {
			if _, typed := errors.AsType[*RejectError](s.Err); !typed {
				t.Fatalf("the error is not typed: %v", s.Err)
			}
			return
		}
		if err := s.Event().Validate(); err != nil {
			t.Fatalf("what was read is not valid: %v", err)
		}
		first, data, err := s.Message()
		if reject, typed := errors.AsType[*RejectError](err); typed && reject.Reason == ReasonOversized {
			return // percent-encoding can exceed the limit of the header
		}
		if err != nil {
			t.Fatalf("what was read is not written: %v", err)
		}
		again := NewStored("s", 1, testTime, first, data)
		if again.Err != nil {
			t.Fatalf("what was written is not read: %v", again.Err)
		}
		second, _, err := again.Message()
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", first, second)
	})
}

// FuzzMessage checks that every attribute survives encoding and decoding, and that no value becomes a header.
func FuzzMessage(f *testing.F) {
	f.Add("id", "subject", "value", []byte("{}"))
	f.Add("a b", `quo"ted`, "100%\r\nce-id: 2", []byte{0, 1})
	f.Add("ü", "\xff", "\u0085", []byte(nil))
	f.Fuzz(func(t *testing.T, id, subject, value string, data []byte) {
		s := Stored{envelope: envelope{attributes: fields{
			{"specversion", "1.0"}, {"id", id}, {"type", "t"}, {"source", "k8s://c/watcher"}, {"subject", subject}, {"x", value},
		}}, data: data}
		header, data, err := s.Message()
		if err != nil {
			return
		}
		for _, values := range header {
			if strings.ContainsFunc(values[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("header value %q", values[0])
			}
		}
		read := NewStored("s", 1, testTime, header, data)
		if read.Err != nil {
			t.Fatalf("what was written is not read: %v", read.Err)
		}
		if got := read.Event(); got.ID() != id || got.Subject() != subject || got.Extensions()["x"] != value || string(got.Data()) != string(data) {
			t.Errorf("got %v", got)
		}
	})
}

func BenchmarkAChangeIsWritten(b *testing.B) {
	c := change()
	b.ReportAllocs()
	for b.Loop() {
		message(b, c)
	}
}

func BenchmarkAChangeIsRead(b *testing.B) {
	c := change()
	header, data := message(b, c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewStored(c.Subject(), 1, testTime, header, data).Change(); err != nil {
			b.Fatal(err)
		}
	}
}
