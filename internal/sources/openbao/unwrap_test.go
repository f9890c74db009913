package openbao

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// findingsIn returns what is found in a body.
func findingsIn(t testing.TB, body io.Reader) (findings []finding) {
	t.Helper()
	testkit.Must(t, readEntries(body, func(f finding) { findings = append(findings, f) }))
	return findings
}

// decodeLine returns what is found in a line. That is one thing.
func decodeLine(t testing.TB, line []byte) (entry, verdict) {
	t.Helper()
	found := findingsIn(t, bytes.NewReader(line))
	if len(found) != 1 {
		t.Fatalf("found %+v, want one thing", found)
	}
	return found[0].entry, found[0].verdict
}

// take accepts what is found in a line, and reports whether there is room for all of it.
func (i *intake) take(ctx context.Context, line []byte) bool {
	hasRoom := true
	err := readEntries(bytes.NewReader(line), func(f finding) { hasRoom = i.accept(ctx, f) && hasRoom })
	return hasRoom && err == nil
}

func TestAllThatShippersMakeOfALineIsTheSame(t *testing.T) {
	for _, file := range []string{"vault-1.13.0.jsonl", "openbao-2.6.2.jsonl"} {
		lines := samples(t, file)
		three := [][]byte{
			lines["response create secret/data/shop/db"], lines["response read secret/data/shop/db"], lines["response update secret/data/shop/db"],
		}
		created, _ := decodeLine(t, three[0])
		updated, _ := decodeLine(t, three[2])
		if created.version != 1 || updated.version != 2 || created.path != "secret/data/shop/db" || !updated.at.After(created.at) {
			t.Fatalf("the lines are about %+v and %+v", created, updated)
		}
		for _, test := range shapes() {
			t.Run(file+" as "+test.name, func(t *testing.T) {
				var entries []entry
				counts := map[verdict]int{}
				for _, f := range findingsIn(t, bytes.NewReader(test.body(three))) {
					counts[f.verdict]++
					if f.verdict == used && !slices.Contains(entries, f.entry) {
						entries = append(entries, f.entry)
					}
				}
				wantEqual(t, "entries", []entry{created, updated}, entries)
				if counts[ignored] == 0 || counts[malformed] > 0 || counts[foreign] != test.foreign {
					t.Errorf("%v, want the read ignored, and %d that are no lines", counts, test.foreign)
				}
			})
		}
	}
}

func TestALineThatIsCutOffTakesNothingOfTheNext(t *testing.T) {
	lines := samples(t, "openbao-2.6.2.jsonl")
	first, second, third := lines["response create kv/data/x/y"], lines["response create secret/data/shop/db"], lines["response update secret/data/shop/db"]
	for n := range first {
		var entries []entry
		body := slices.Concat(first[:n], []byte("\n"), second, []byte("\n"), third)
		for _, f := range findingsIn(t, bytes.NewReader(body)) {
			if f.verdict == used {
				entries = append(entries, f.entry)
			}
		}
		if len(entries) != 2 || entries[0].version != 1 || entries[1].version != 2 {
			t.Fatalf("after %q: %+v, want the entries of both lines", first[:n], entries)
		}
	}
}

func TestNothingInAnEntryIsTakenForAnEntry(t *testing.T) {
	inside := string(writeLine("update", "secret/data/other", 9))
	for name, line := range map[string]string{
		"as an object": strings.Replace(inside, `"request":{`, `"request":{"data":`+inside+`,`, 1),
		"as text":      strings.Replace(inside, `"request":{`, `"request":{"data":`+inJSON(inside)+`,`, 1),
		"as an error":  strings.Replace(inside, `"type":`, `"error":`+inJSON(inside)+`,"type":`, 1),
	} {
		if found := findingsIn(t, strings.NewReader(line)); len(found) != 1 {
			t.Errorf("%s: found %+v, want the line itself", name, found)
		}
	}
}

// Whoever writes a secret chooses how deep its data is, which is in the line, and the lines of others may be in the same JSON value.
func TestALineWithDeepDataTakesNothingOfTheOthers(t *testing.T) {
	deep := func(depth int, open, closing string) string {
		return strings.Repeat(open, depth) + `"}]\"{"` + strings.Repeat(closing, depth)
	}
	for _, test := range []struct{ name, data string }{
		{name: "at the limit", data: deep(maxNesting, `{"a":`, "}")},
		{name: "beyond the limit", data: deep(300, `{"a":`, "}")},
		{name: "in arrays", data: deep(100_000, "[", "]")},
	} {
		t.Run(test.name, func(t *testing.T) {
			line := strings.Replace(string(writeLine("update", "secret/data/deep", 4)), `"request":{`, `"request":{"data":`+test.data+",", 1)
			body := "[" + line + "," + string(writeLine("update", "secret/data/db", 2)) + "]"
			var paths []string
			for _, f := range findingsIn(t, strings.NewReader(body)) {
				paths = append(paths, string(f.verdict)+" "+f.entry.path)
			}
			wantEqual(t, "found", []string{"used secret/data/deep", "used secret/data/db"}, paths)
			cut := line[:strings.Index(line, `"}]`)] + "\n" + string(writeLine("update", "secret/data/db", 2))
			if found := findingsIn(t, strings.NewReader(cut)); len(found) == 0 || found[len(found)-1].entry.path != "secret/data/db" {
				t.Errorf("found %+v after a line that was cut off, want the next one", found)
			}
		})
	}
}

// pattern is an endless text of that character.
type pattern byte

// Read implements io.Reader.
func (p pattern) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = byte(p)
	}
	return len(into), nil
}

func TestALineOfAnyLengthTakesLittleMemory(t *testing.T) {
	write := string(writeLine("update", "secret/data/db", 4))
	before, behind, _ := strings.Cut(write, `"request":{`)
	for name, form := range map[string]func(string) string{
		"in a line":           func(text string) string { return text },
		"in a string in JSON": func(text string) string { return strings.ReplaceAll(text, `"`, `\"`) },
	} {
		head, tail := form(before+`"request":{"x":"`), form(`",`+behind)
		if name != "in a line" {
			head, tail = `{"log":"`+head, tail+`"}`
		}
		body := io.MultiReader(strings.NewReader(head), io.LimitReader(pattern('x'), 8<<20), strings.NewReader(tail))
		var at, after runtime.MemStats
		runtime.ReadMemStats(&at)
		found := findingsIn(t, body)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - at.TotalAlloc; took > 1<<20 || len(found) != 1 || found[0].verdict != used {
			t.Errorf("%s: took %d bytes for %+v", name, took, found)
		}
	}
}

func TestWhatIsNoLineIsNoSignOfLifeAndLoggedOnce(t *testing.T) {
	for _, test := range []struct {
		name, body string
		foreign    int64
	}{
		{name: "text", body: "canary\n\ncanary [INFO]\n", foreign: 2},
		{name: "JSON of another program", body: `{"level":"info","msg":"canary {}","request":"GET /"}` + "\n" + `{"canary":{}}`, foreign: 2},
		{name: "the fields of an entry under other names", body: `{"audit.type":"response","audit.request.path":"secret/data/canary"}`, foreign: 1},
		{name: "an array of others", body: `[{"canary":1},"canary",3]`, foreign: 3},
		{name: "both", body: "canary\n{}\n", foreign: 2},
		{name: "an object of Python", body: `{'type': 'response', 'request': {'path': 'canary'}}`, foreign: 1},
		{name: "bytes", body: "\xdf\x00\x01{\x82\xa4canary\xff", foreign: 1},
		{name: "half of JSON", body: `{"canary":[{"a":`, foreign: 1},
		{name: "nothing", body: " \n\r\n\t"},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := &testkit.Log{}
			i, now := intakeOf(t, maxLooks), time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
			i.now = func() time.Time { return now }
			i.status = newStatus(log.Logger(), i.now)
			var counted int64
			for range 3 {
				for _, f := range findingsIn(t, strings.NewReader(test.body)) {
					if f.verdict != foreign || !i.accept(t.Context(), f) {
						t.Errorf("found %+v", f)
					}
					counted++
				}
				now = now.Add(59 * time.Minute)
			}
			if _, lineAt := i.status.lastSeen(); !lineAt.IsZero() || counted != 3*test.foreign || len(i.polls) > 0 {
				t.Errorf("%d are no lines, want %d; a line was seen at %v", counted, 3*test.foreign, lineAt)
			}
			logged := min(int(test.foreign), 1)
			if text := log.String(); strings.Count(text, "\n") != logged || strings.Contains(text, "canary") {
				t.Errorf("want %d lines, and nothing of what was received:\n%s", logged, text)
			}
			now = now.Add(time.Hour)
			i.readBody(t, []byte(test.body))
			if got := strings.Count(log.String(), "\n"); got != 2*logged {
				t.Errorf("%d lines after an hour without such, want %d:\n%s", got, 2*logged, log)
			}
			if i.readBody(t, writeLine("update", "secret/data/db", 4)); len(i.taken()) != 1 {
				t.Error("a line after it is not taken")
			}
			if _, lineAt := i.status.lastSeen(); !lineAt.Equal(now) {
				t.Errorf("a line was seen at %v, want %v", lineAt, now)
			}
		})
	}
}

func FuzzReadEntries(f *testing.F) {
	lines := samples(f, "openbao-2.6.2.jsonl")
	for _, line := range lines {
		f.Add(line)
	}
	two := [][]byte{lines["response create secret/data/shop/db"], lines["response update secret/data/shop/db"]}
	for _, s := range shapes() {
		if body := s.body(two); len(body) < 1<<16 {
			f.Add(body)
		}
	}
	f.Add([]byte(lineOf(`"operation":"update","mount_point":"kv/","mount_type":"kv","path":"kv/destroy/db","data":{"versions":[1,7]}`, "", "")))
	f.Add([]byte(`{"log":"\ud83d\ude00\ud83d{\n\u12","type":"response","x":[[[{"request":`))
	f.Add([]byte("{\"type\":\"response\",\"request\":\n{\n[\"\n\"{\"\\"))
	f.Fuzz(func(t *testing.T, body []byte) {
		found := findingsIn(t, bytes.NewReader(body))
		if slowly := findingsIn(t, iotest.OneByteReader(bytes.NewReader(body))); !slices.Equal(found, slowly) {
			t.Fatalf("found %+v, and byte by byte %+v", found, slowly)
		}
		for _, one := range found {
			if (one.verdict == used) != !reflect.ValueOf(one.entry).IsZero() {
				t.Fatalf("%+v", one)
			}
			checkEntry(t, &one.entry)
		}
		// The same text in a string in JSON has the same entries. Without a backslash it has none that are in strings already.
		if !utf8.Valid(body) || bytes.IndexByte(body, '\\') >= 0 {
			return
		}
		isForeign := func(f finding) bool { return f.verdict == foreign }
		wrapped := findingsIn(t, strings.NewReader(`{"log":`+inJSON(string(body))+`}`))
		if found, wrapped = slices.DeleteFunc(found, isForeign), slices.DeleteFunc(wrapped, isForeign); !slices.Equal(found, wrapped) {
			t.Fatalf("found %+v, and in a string %+v", found, wrapped)
		}
	})
}

// checkEntry checks that requests and events can be made of what an entry means.
func checkEntry(t *testing.T, e *entry) {
	t.Helper()
	mount, _, _ := strings.Cut(e.path, "/")
	for _, isPlain := range []bool{true, false} {
		c, ok := judge(e, engineMount{namespace: e.namespace, path: mount, engine: events.EngineKV, isPlain: isPlain})
		if !ok {
			continue
		}
		path := events.StorePath{Store: "main", Namespace: e.namespace, Mount: mount, Path: c.path}
		if back, err := path.Source().StorePath(); err == nil && back != path {
			t.Errorf("%+v is read back as %+v", path, back)
		}
		if !isPath(c.path) {
			t.Errorf("no request can be made of %s", c.path)
		}
	}
}

func BenchmarkReadEntries(b *testing.B) {
	read := append(samples(b, "openbao-2.6.2.jsonl")["response read secret/data/shop/db"], '\n')
	body := bytes.Repeat(read, 1000)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		count := 0
		if err := readEntries(bytes.NewReader(body), func(finding) { count++ }); err != nil || count != 1000 {
			b.Fatal(count, err)
		}
	}
}
