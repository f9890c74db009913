package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"

	"github.com/keyturn/keyturn/tests/testkit"
)

// headers is the header of a message.
type headers = map[string][]string

func TestFromMsgIgnoresTheCaseOfKeys(t *testing.T) {
	e, err := change().Event()
	testkit.Must(t, err)
	header, err := HeaderOf(e)
	testkit.Must(t, err)
	other := headers{}
	for key, values := range header {
		other[strings.ToUpper(key)] = values
	}
	got, err := FromMsg("s", other, e.Data())
	testkit.Must(t, err)
	testkit.WantEqual(t, "difference", e.String(), got.String())
}

func attributesOf(e *event.Event) *event.EventContextV1 { return e.Context.(*event.EventContextV1) }

func TestNoHeaderIsMadeOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		alter  func(*event.Event)
		reason string
	}{
		{"an event without attributes", func(e *event.Event) { e.Context = nil }, ReasonUnknownVersion},
		{"a control character", func(e *event.Event) { e.SetExtension("x", "a\r\nNats-Rollup: all") }, ReasonMalformed},
		{"an attribute with the name of no attribute", func(e *event.Event) { attributesOf(e).Extensions["X"] = "x" }, ReasonMalformed},
		{"an extension with the name of an attribute", func(e *event.Event) { attributesOf(e).Extensions["specversion"] = "2.0" }, ReasonMalformed},
		{"no id", func(e *event.Event) { attributesOf(e).ID = "" }, ReasonMalformed},
		{"a subject with space around it", func(e *event.Event) { attributesOf(e).Subject = new(" s") }, ReasonMalformed},
		{"too much data", func(e *event.Event) { e.DataEncoded = make([]byte, MaxEventSize+1) }, ReasonOversized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := change().Event()
			testkit.Must(t, err)
			tt.alter(&e)
			_, err = HeaderOf(e)
			wantReason(t, err, tt.reason)
		})
	}
}

func TestFromMsgRefuses(t *testing.T) {
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
			e, err := change().Event()
			testkit.Must(t, err)
			header, err := HeaderOf(e)
			testkit.Must(t, err)
			tt.alter(header)
			_, err = FromMsg("s", header, e.Data())
			wantReason(t, err, tt.reason)
		})
	}
	_, err := FromMsg("s", nil, make([]byte, MaxEventSize+1))
	wantReason(t, err, ReasonOversized)
}

// FuzzFromMsg checks that every decoded event is valid, and survives encoding and decoding.
func FuzzFromMsg(f *testing.F) {
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
		e, err := FromMsg("s", header, data)
		if err != nil {
			if _, typed := errors.AsType[*RejectError](err); !typed {
				t.Fatalf("the error is not typed: %v", err)
			}
			return
		}
		if err := e.Validate(); err != nil {
			t.Fatalf("what was read is not valid: %v", err)
		}
		first, err := HeaderOf(e)
		if reject, typed := errors.AsType[*RejectError](err); typed && reject.Reason == ReasonOversized {
			return // percent-encoding can exceed the limit of the header
		}
		if err != nil {
			t.Fatalf("what was read is not written: %v", err)
		}
		again, err := FromMsg("s", first, e.Data())
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		second, err := HeaderOf(again)
		testkit.Must(t, err)
		testkit.WantEqual(t, "difference", first, second)
	})
}

// FuzzHeaderOf checks that every attribute survives encoding and decoding, and that no value becomes a header.
func FuzzHeaderOf(f *testing.F) {
	f.Add("id", "subject", "value", []byte("{}"))
	f.Add("a b", `quo"ted`, "100%\r\nce-id: 2", []byte{0, 1})
	f.Add("ü", "\xff", "\u0085", []byte(nil))
	f.Fuzz(func(t *testing.T, id, subject, value string, data []byte) {
		e := event.Event{Context: &event.EventContextV1{
			ID: id, Type: "t", Source: *types.ParseURIRef("k8s://c/watcher"), Subject: &subject, Extensions: map[string]any{"x": value},
		}, DataEncoded: data}
		header, err := HeaderOf(e)
		if err != nil {
			return
		}
		for _, values := range header {
			if strings.ContainsFunc(values[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
				t.Errorf("header value %q", values[0])
			}
		}
		got, err := FromMsg("s", header, e.Data())
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		if got.ID() != id || got.Subject() != subject || got.Extensions()["x"] != value || string(got.Data()) != string(data) {
			t.Errorf("got %v", got)
		}
	})
}

func BenchmarkAChangeIsWritten(b *testing.B) {
	c := change()
	b.ReportAllocs()
	for b.Loop() {
		e, err := c.Event()
		testkit.Must(b, err)
		_, err = HeaderOf(e)
		testkit.Must(b, err)
	}
}

func BenchmarkAChangeIsRead(b *testing.B) {
	c := change()
	subject, e := c.Subject(), mustEvent(b, c.Event)
	header, err := HeaderOf(e)
	testkit.Must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewStored(subject, 1, testTime, header, e.Data()).Change(); err != nil {
			b.Fatal(err)
		}
	}
}
