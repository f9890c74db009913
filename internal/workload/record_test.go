package workload

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// recordAfter returns the record that a patch with new entries writes.
func recordAfter(t *testing.T, w *Workload, write map[string]RolledFor) (string, map[string]RolledFor) {
	t.Helper()
	patch := patchFor(t, deployments, w, Write{Rolled: write, Rolls: true})
	written, _ := writtenBy(t, patch, annotationRolled)
	text, _ := written.(string)
	return text, parseRolled(text)
}

func TestTheRecordOfAPatternStaysSmall(t *testing.T) {
	w := workloadThat(t, "secret/db, configmap/app-*", Reference{Kind: events.KindConfigMap, Name: "app-0"})
	w.Rolled = map[string]RolledFor{"secret/db": {Fingerprint: fp("a"), Version: "1", UID: "u"}, "configmap/other": {Fingerprint: fp("a"), Version: "9000", UID: "u"}}
	for i := range 3000 {
		w.Rolled["configmap/app-"+strconv.Itoa(i)] = RolledFor{
			Fingerprint: fp("a"), Version: strconv.Itoa(1000 + i), UID: fmt.Sprintf("5f3f6b7e-0000-4000-8000-%012d", i), Scope: ScopeOf(nil),
		}
	}
	write := map[string]RolledFor{"configmap/app-5": {Fingerprint: fp("b"), Version: "7", UID: "u"}}
	text, record := recordAfter(t, w, write)
	if len(text) > 64<<10 {
		t.Errorf("the record has %d bytes, want less than 64 KiB", len(text))
	}
	if again, _ := recordAfter(t, w, write); again != text {
		t.Errorf("made again, the record is %s, want %s", again, text)
	}
	for source, want := range map[string]bool{
		"secret/db":          true,  // it is named
		"configmap/app-0":    true,  // it is referenced
		"configmap/app-5":    true,  // it is new
		"configmap/app-2999": true,  // it changed last
		"configmap/app-9":    false, // it is old
		"configmap/other":    false, // nothing matches it
	} {
		if _, kept := record[source]; kept != want {
			t.Errorf("the record has %s: %t, want %t", source, kept, want)
		}
	}
	if len(record) != maxMatched+3 {
		t.Errorf("the record has %d entries, want %d, 2 that are named, and one for the rest", len(record), maxMatched)
	}
	testkit.WantEqual(t, "what it says of the rest", RolledFor{Fingerprint: "-", Version: "3800", UID: "-"}, record["configmap/*"])
}

func TestAWorkloadIsDoneWithWhatItsRecordHasNoRoomFor(t *testing.T) {
	w := workloadThat(t, "secret/db, secret/d*, configmap/app-*", Reference{Kind: events.KindConfigMap, Name: "app-0"})
	mark := RolledFor{Fingerprint: "-", Version: "300", UID: "-"}
	w.Rolled = map[string]RolledFor{"configmap/*": mark, "secret/*": mark}
	tests := []struct {
		name, source, version string
		want                  bool
	}{
		{"the last change that was dropped", "configmap/app-7", "300", true},
		{"a later change", "configmap/app-7", "301", false},
		{"a source that has not changed since it was first seen", "configmap/app-7", "", true},
		{"a source that it names, which is never dropped", "secret/db", "299", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := w.HasDropped(source(t, test.source), test.version); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
	if listed := w.Recorded(); len(listed) > 0 {
		t.Errorf("it lists %v as sources", listed)
	}
	if rolled := withRolled(workloadThat(t, "configmap/app-0"), w.Rolled).newRecord(nil); len(rolled) > 0 {
		t.Errorf("without a pattern it is %v", rolled)
	}
}

// withRolled returns a workload with another record.
func withRolled(w *Workload, rolled map[string]RolledFor) *Workload {
	with := *w
	with.Rolled = rolled
	return &with
}

func TestEachStoreHasItsOwnClock(t *testing.T) {
	w := workloadThat(t, "openbao:secret/*")
	w.OptIn.grant(granted{{Store: everything, Paths: []string{everything}}}, nil)
	path := func(store string, i int) events.Source {
		return events.StorePath{Store: store, Namespace: events.RootNamespace, Mount: "secret", Path: strconv.Itoa(i)}.Source()
	}
	w.Rolled = make(map[string]RolledFor)
	for i := range 150 {
		w.Rolled[path("early", i).String()] = RolledFor{Fingerprint: fp("a"), Version: strconv.Itoa(1000 + i), UID: "early"}
		w.Rolled[path("late", i).String()] = RolledFor{Fingerprint: fp("a"), Version: strconv.Itoa(9000 + i), UID: "late"}
	}
	w = withRolled(w, w.newRecord(nil))
	if diff := cmp.Diff(RolledFor{Fingerprint: "-", Version: "1099", UID: "early"}, w.Rolled["openbao/early/*"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for store, want := range map[string]bool{"early": true, "late": false} {
		if got := w.HasDropped(path(store, 200), "1050"); got != want {
			t.Errorf("a change in %s is dropped: %t, want %t", store, got, want)
		}
	}
}

// Each entry that the record takes up may displace another one, which must not be taken up again for that.
func TestARecordWithoutRoomComesToRest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	versions := make(map[string]string)
	for i := range maxMatched + 100 {
		versions["configmap/app-"+strconv.Itoa(i)] = strconv.Itoa(random.IntN(500))
	}
	w := workloadThat(t, "configmap/app-*")
	writes := 0
	for _, atOnce := range []int{len(versions), 1} {
		for {
			entries := make(map[string]RolledFor)
			for _, text := range slices.Sorted(maps.Keys(versions)) {
				_, recorded := w.Rolled[text]
				if !recorded && !w.HasDropped(source(t, text), versions[text]) && len(entries) < atOnce {
					entries[text] = RolledFor{Fingerprint: fp("a"), Version: versions[text], UID: "u"}
				}
			}
			if len(w.Notable(entries)) == 0 {
				break
			}
			w = withRolled(w, w.newRecord(entries))
			if writes++; writes > len(versions) {
				t.Fatalf("it is written time and again: %v", entries)
			}
		}
		// More than there is room for have changed.
		for i := range 50 {
			versions["configmap/app-"+strconv.Itoa(i)] = strconv.Itoa(1000 + i)
			delete(w.Rolled, "configmap/app-"+strconv.Itoa(i))
		}
	}
}

func TestARecordIsWrittenInOneForm(t *testing.T) {
	entry := RolledFor{Fingerprint: "k1:a", Version: "100", UID: "u", Scope: "*"}
	record := map[string]RolledFor{
		"secret/db": entry, "secret/gone": DeletedAfter(entry), "secret/waits": Owed(entry), "secret/undone": unrolled(entry),
		"configmap/app": Owed(DeletedAfter(entry)), "configmap/*": {Fingerprint: "-", Version: "300", UID: "-"},
		"openbao/bao/*": {Fingerprint: "-", Version: "1773500966000000000", UID: "bao"},
	}
	const want = `{"configmap/*":"-@300/-","configmap/app":"k1:owed-for-deletion@0/u","openbao/bao/*":"-@1773500966000000000/bao",` +
		`"secret/db":"k1:a@100/u#*","secret/gone":"k1:deleted@100/u","secret/undone":"k1:none@0/none","secret/waits":"k1:owed@0/u"}`
	if text := formatRolled(record); text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	testkit.WantEqual(t, "it is read otherwise", record, parseRolled(want))
}

func FuzzARecordThatIsCut(f *testing.F) {
	many := make(map[string]RolledFor)
	for i := range maxMatched + 100 {
		many["configmap/app-"+strconv.Itoa(i)] = RolledFor{Fingerprint: fp("a"), Version: strconv.Itoa(i), UID: "u"}
	}
	text := formatRolled(many)
	f.Add(text)
	f.Add(strings.Replace(text, "{", `{"configmap/*":"-@x/-",`, 1))
	f.Add(strings.Replace(text, "{", `{"configmap/*":"k0:00@900/u","secret/db":"-@7/-",`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		w := workloadThat(t, "configmap/app-*, secret/*, secret/db")
		before := withRolled(w, parseRolled(text))
		after := withRolled(w, before.newRecord(nil))
		if diff := cmp.Diff(after.Rolled, after.newRecord(nil)); diff != "" {
			t.Errorf("it is cut again (-once +twice):\n%s", diff)
		}
		for text, entry := range before.Rolled {
			read, err := events.ParseSource(text)
			if _, kept := after.Rolled[text]; kept || err != nil || !events.Newer(entry.Version, NoVersion) {
				continue
			}
			if read.Namespace = "shop"; w.OptIn.matches(read) && !after.HasDropped(read, entry.Version) {
				t.Errorf("%s is neither in it nor dropped", text)
			}
		}
	})
}
