package openbao

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/keyturn/keyturn/internal/events"
	"github.com/keyturn/keyturn/tests/testkit"
)

// pagingStore answers about the secrets of one mount as OpenBao does.
type pagingStore struct {
	paths     []string // sorted
	noScan    bool     // the token may not scan
	pageLimit int      // the pagination_limit of the token's policy; zero: it has none

	scans, lists int
}

// RoundTrip is that of http.RoundTripper.
func (s *pagingStore) RoundTrip(r *http.Request) (*http.Response, error) {
	// The client requests a folder without the slash at its end.
	folder, detailed := strings.CutPrefix(r.URL.Path+"/", "/v1/secret/detailed-metadata/")
	query := r.URL.Query()
	var names []string
	switch {
	case detailed && query.Has("scan") && !s.noScan:
		s.scans++
		for _, path := range s.below(folder) {
			names = append(names, path[len(folder):])
		}
	case detailed && query.Has("list"):
		s.lists++
		names = s.page(folder, query.Get("after"), query.Get("limit"))
	default:
		return response(r, http.StatusForbidden, forbidden), nil
	}
	if len(names) == 0 {
		return response(r, http.StatusNotFound, `{"errors":[]}`), nil
	}
	return response(r, http.StatusOK, detailsOf(names)), nil
}

// below returns the paths of the secrets in a folder and below.
func (s *pagingStore) below(folder string) []string {
	from, _ := slices.BinarySearch(s.paths, folder)
	upTo, _ := slices.BinarySearch(s.paths, folder+"\xff")
	return s.paths[from:upTo]
}

// page returns the names in a folder that follow one.
func (s *pagingStore) page(folder, after, limit string) []string {
	most, err := strconv.Atoi(limit)
	if err != nil {
		most = len(s.paths)
	}
	if s.pageLimit > 0 {
		most = min(most, s.pageLimit)
	}
	var names []string
	for _, path := range s.below(folder) {
		name, _, isFolder := strings.Cut(path[len(folder):], "/")
		if isFolder {
			name += "/"
		}
		if name > after && len(names) < most && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	return names
}

// detailsOf returns an answer with the metadata of secrets, each of two versions.
func detailsOf(names []string) string {
	const metadata = `{"current_version":2,"custom_metadata":null,"versions":{
		"1":{"created_time":"2026-11-20T11:03:17.1Z","deletion_time":"","destroyed":false},
		"2":{"created_time":"2026-11-20T11:03:17.2Z","deletion_time":"","destroyed":false}}}`
	details := make([]string, len(names))
	for i, name := range names {
		about := metadata
		if strings.HasSuffix(name, "/") {
			about = "{}"
		}
		details[i] = fmt.Sprintf("%q:%s", name, about)
	}
	return `{"data":{"key_info":{` + strings.Join(details, ",") + "}}}"
}

// inFolders returns the paths of secrets that are in folders in turn, or in none.
func inFolders(secrets, folders int) []string {
	paths := make([]string, secrets)
	for i := range paths {
		paths[i] = fmt.Sprintf("team-%d/app-%d/database", i%cmp.Or(folders, 1), i)
		if folders == 0 {
			paths[i] = fmt.Sprintf("app-%d", i)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestAVeryLargeMountIsScannedInPartsThatCanBeHeld(t *testing.T) {
	for _, test := range []struct {
		name               string
		store              *pagingStore
		most, scans, lists int
	}{
		{name: "in one answer", store: &pagingStore{paths: inFolders(5000, 50)}, most: maxScanned, scans: 1},
		{name: "folder by folder", store: &pagingStore{paths: inFolders(20_000, 4)}, most: 5000, scans: 5, lists: 2},
		{name: "a flat folder page by page", store: &pagingStore{paths: inFolders(20_000, 0)}, most: 10_000, scans: 1, lists: 5},
		{name: "what may not be scanned", store: &pagingStore{paths: inFolders(10, 2), noScan: true}, most: 100, lists: 26},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := make([]bool, len(test.store.paths))
			p := scannerOf(t, test.store, test.most, time.Now, func(o Observation) bool {
				at, known := slices.BinarySearch(test.store.paths, o.Path.Path)
				if !known || o.Version != 2 || o.State != Live || found[at] {
					t.Errorf("found %+v", o)
				}
				found[at] = true
				return true
			})
			err := readOf(p).readSecrets(t.Context())
			if missed := slices.Index(found, false); err != nil || missed >= 0 {
				t.Fatalf("%v; one not found is at %d", err, missed)
			}
			if test.store.scans != test.scans || test.store.lists != test.lists {
				t.Errorf("%d scans and %d lists, want %d and %d", test.store.scans, test.store.lists, test.scans, test.lists)
			}
		})
	}
}

func TestAFolderThatIsTooLargeIsNotScannedAgainSoon(t *testing.T) {
	store := &pagingStore{paths: inFolders(11, 0), pageLimit: 4}
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	found := 0
	p := scannerOf(t, store, 10, func() time.Time { return now }, func(Observation) bool { found++; return true })
	for _, poll := range []struct {
		after time.Duration
		scans int
	}{{0, 1}, {time.Minute, 1}, {scanAgain, 2}} {
		now, found = now.Add(poll.after), 0
		testkit.Must(t, readOf(p).readSecrets(t.Context()))
		if store.scans != poll.scans || found != len(store.paths) {
			t.Errorf("%v later: %d scans, want %d; found %d of %d", poll.after, store.scans, poll.scans, found, len(store.paths))
		}
	}
}

var secretMount = engineMount{namespace: events.RootNamespace, path: "secret", engine: events.EngineKV}

func readOf(p *poller) *mountRead {
	return &mountRead{poller: p, in: secretMount, at: placesOf[events.EngineKV], missing: sets.Set[string]{}}
}

// scannerOf returns a poller of a store that holds at most that many secrets of an answer.
func scannerOf(t *testing.T, store *pagingStore, most int, now func() time.Time, sink func(Observation) bool) *poller {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	config := &storeConfig{Name: "main", servers: []string{"https://bao.test"}, Auth: authConfig{Token: "canary"}}
	c, err := newClient(config, store, now, log)
	testkit.Must(t, err)
	t.Cleanup(c.close)
	c.most = most
	return &poller{
		config: config, metadata: &metadataReader{config: config, client: c}, outlet: newOutlet(sink, newStatus(log, now), c),
		options: &Options{Now: now}, ways: map[mountName]*scanWay{},
	}
}
