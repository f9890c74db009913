package events

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/cloudevents/sdk-go/v2/types"
	"github.com/google/go-cmp/cmp"
)

// headers is the header of a message.
type headers = map[string][]string

func TestHeadersHaveKeysInLowerCase(t *testing.T) {
	e, err := change().Event()
	must(t, err)
	header, err := headerOf(e)
	must(t, err)
	for key := range header {
		if key != strings.ToLower(key) || !strings.HasPrefix(key, "ce-") {
			t.Errorf("key %q", key)
		}
	}
	if got := header["ce-datacontenttype"]; !cmp.Equal(got, []string{"application/json"}) {
		t.Errorf("ce-datacontenttype is %v", got)
	}
}

func TestFromMsgIgnoresTheCaseOfKeys(t *testing.T) {
	e, err := change().Event()
	must(t, err)
	header, err := headerOf(e)
	must(t, err)
	other := headers{}
	for key, values := range header {
		other[strings.ToUpper(key)] = values
	}
	got, err := FromMsg("s", other, e.Data())
	must(t, err)
	wantEqual(t, "difference", e.String(), got.String())
}

func TestHeadersHaveEveryTypeOfAttribute(t *testing.T) {
	e := event.New()
	e.SetID("1")
	e.SetType("t")
	e.SetSource("/s")
	e.SetDataSchema("https://example.org/schema")
	e.SetExtension("flag", true)
	e.SetExtension("count", int32(-5))
	e.SetExtension("bytes", []byte{1, 2, 3})
	e.SetExtension("at", types.Timestamp{Time: testTime})
	e.SetExtension("where", types.URI{URL: url.URL{Scheme: "https", Host: "example.org"}})
	header, err := headerOf(e)
	must(t, err)
	want := headers{
		"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-type": {"t"}, "ce-source": {"/s"},
		"ce-dataschema": {"https://example.org/schema"}, "ce-flag": {"true"}, "ce-count": {"-5"}, "ce-bytes": {"AQID"},
		"ce-at": {"2026-03-14T15:09:26.535897932Z"}, "ce-where": {"https://example.org"},
	}
	wantEqual(t, "difference", want, header)
	if _, err := FromMsg("s", header, nil); err != nil {
		t.Errorf("what was written is not read: %v", err)
	}
}

func TestNoHeaderIsMadeOf(t *testing.T) {
	tests := []struct {
		name   string
		alter  func(*event.Event)
		reason string
	}{
		{"an event without attributes", func(e *event.Event) { e.Context = nil }, ReasonUnknownVersion},
		{"an old specversion", func(e *event.Event) { e.SetSpecVersion("0.3") }, ReasonUnknownVersion},
		{"an event without an id", func(e *event.Event) { e.Context = &event.EventContextV1{Type: "t", Source: *types.ParseURIRef("/s")} }, ReasonMalformed},
		{"a control character", func(e *event.Event) { e.SetExtension("x", "a\r\nNats-Rollup: all") }, ReasonMalformed},
		{"too much data", func(e *event.Event) { e.DataEncoded = make([]byte, MaxEventSize+1) }, ReasonOversized},
		{"too large an attribute", func(e *event.Event) { e.SetExtension("x", strings.Repeat("x", MaxHeaderSize)) }, ReasonOversized},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := change().Event()
			must(t, err)
			tt.alter(&e)
			_, err = headerOf(e)
			wantReason(t, err, tt.reason)
		})
	}
}

func TestFromMsgRefuses(t *testing.T) {
	tests := []struct {
		name   string
		alter  func(headers)
		reason string
	}{
		{"a message without attributes", func(h headers) { clear(h) }, ReasonMalformed},
		{"structured mode", func(h headers) { h["Content-Type"] = []string{"application/cloudevents+json"} }, ReasonStructured},
		{"structured mode in any case", func(h headers) { h["content-type"] = []string{"Application/CloudEvents; charset=utf-8"} }, ReasonStructured},
		{"a batch", func(h headers) { h["Content-Type"] = []string{"application/cloudevents-batch+json"} }, ReasonStructured},
		{"a later specversion", func(h headers) { h["ce-specversion"] = []string{"2.0"} }, ReasonUnknownVersion},
		{"no specversion", func(h headers) { delete(h, "ce-specversion") }, ReasonMalformed},
		{"no id", func(h headers) { delete(h, "ce-id") }, ReasonMalformed},
		{"an empty type", func(h headers) { h["ce-type"] = []string{""} }, ReasonMalformed},
		{"an id of blanks", func(h headers) { h["ce-id"] = []string{"%20"} }, ReasonMalformed},
		{"no source", func(h headers) { delete(h, "ce-source") }, ReasonMalformed},
		{"a source that is no URI", func(h headers) { h["ce-source"] = []string{"k8s://%5B"} }, ReasonMalformed},
		{"a source that is not in its canonical form", func(h headers) { h["ce-source"] = []string{"K8S://prod-eu/watcher"} }, ReasonMalformed},
		{"a time of another format", func(h headers) { h["ce-time"] = []string{"yesterday"} }, ReasonMalformed},
		{"a time that leaves the calendar in UTC", func(h headers) { h["ce-time"] = []string{"9999-12-31T23:59:59-23:59"} }, ReasonMalformed},
		{"a relative dataschema", func(h headers) { h["ce-dataschema"] = []string{"schema"} }, ReasonMalformed},
		{"a content type that is none", func(h headers) { h["ce-datacontenttype"] = []string{"a/b/c"} }, ReasonMalformed},
		{"two values", func(h headers) { h["ce-id"] = []string{"1", "2"} }, ReasonMalformed},
		{"two keys that differ in case", func(h headers) { h["Ce-Id"] = []string{"2"} }, ReasonMalformed},
		{"an illegal name", func(h headers) { h["ce-a_b"] = []string{"x"} }, ReasonMalformed},
		{"overlong UTF-8", func(h headers) { h["ce-name"] = []string{"%C0%AF"} }, ReasonMalformed},
		{"a header that is too large", func(h headers) { h["x"] = []string{strings.Repeat("x", MaxHeaderSize)} }, ReasonOversized},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := change().Event()
			must(t, err)
			header, err := headerOf(e)
			must(t, err)
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
	f.Add(`"%41"`, "t", "/s", "", "", "ext", "%F0%9F%94%91", []byte(nil))
	f.Add("1", "t", "//", "0001-01-01T00:00:00+23:00", "text/plain; charset=utf-8", "dataschema", "urn:x", []byte("x"))
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
		first, err := headerOf(e)
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
		second, err := headerOf(again)
		must(t, err)
		wantEqual(t, "difference", first, second)
	})
}

// FuzzHeaderOf checks that every attribute survives encoding and decoding, and that no value becomes a header.
func FuzzHeaderOf(f *testing.F) {
	f.Add("id", "subject", "value", []byte("{}"))
	f.Add("a b", `quo"ted`, "100%\r\nce-id: 2", []byte{0, 1})
	f.Add("ü", "\xff", "\u0085", []byte(nil))
	f.Fuzz(func(t *testing.T, id, subject, value string, data []byte) {
		e := event.Event{Context: &event.EventContextV1{
			ID: id, Type: "t", Source: *types.ParseURIRef("/s"), Subject: &subject, Extensions: map[string]any{"x": value},
		}, DataEncoded: data}
		header, err := headerOf(e)
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

// A message is made for each change and for each outcome of one, and the actuator reads each change. The numbers are those with the race detector,
// which adds a few.
func TestAMessageCostsNoMoreAllocationsThanBefore(t *testing.T) {
	c, o := change(), outcome()
	c.Trace, o.Trace = TraceContext{}, TraceContext{}
	write := func(encode func() (event.Event, error)) (headers, []byte, error) {
		e, err := encode()
		if err != nil {
			return nil, nil, err
		}
		header, err := headerOf(e)
		return header, e.Data(), err
	}
	header, data, err := write(c.Event)
	must(t, err)
	for _, tt := range []struct {
		name   string
		before float64
		does   func() error
	}{
		{"to write a change", 52, func() error { _, _, err := write(c.Event); return err }},
		{"to read a change", 62, func() error { _, err := newStored(c.subject(), 1, testTime, header, data).Change(); return err }},
		{"to write an outcome", 46, func() error { _, _, err := write(o.Event); return err }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := testing.AllocsPerRun(200, func() {
				if err := tt.does(); err != nil {
					t.Fatal(err)
				}
			})
			if got > tt.before*1.1 {
				t.Errorf("it costs %.0f allocations, a tenth more than %.0f", got, tt.before)
			}
		})
	}
}
