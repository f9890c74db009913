package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// second gives a time.
func second(n int64) time.Time { return time.Unix(n, 0) }

func TestSyncTimesTellsWhenASyncWasForcedAndWhenItWasDone(t *testing.T) {
	for _, test := range []struct {
		name           string
		seen           []syncSight
		forced, synced time.Time
	}{
		{name: "nothing was seen"},
		{name: "a sync for another event is another", seen: []syncSight{{second(1), "db/1", "a"}, {second(2), "db/1", "b"}}},
		{
			name: "a sync that was forced and is not done has no end",
			seen: []syncSight{{second(1), "db/1", "a"}, {second(2), "db/2", "a"}, {second(3), "db/2", "a"}}, forced: second(2),
		},
		{
			name: "a sync is done when the status has moved on, and not by what was synced before or after",
			seen: []syncSight{
				{second(1), "db/1", "a"}, {second(2), "db/1", "b"}, {second(3), "db/2", "b"}, {second(4), "db/2", "c"}, {second(5), "db/2", "d"},
			},
			forced: second(3), synced: second(4),
		},
		{
			name:   "a sync is done also where a later one was forced meanwhile",
			seen:   []syncSight{{second(1), "db/2", "a"}, {second(2), "db/3", "a"}, {second(3), "db/3", "b"}},
			forced: second(1), synced: second(3),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			forced, synced := syncTimes(test.seen, "db/2")
			if !forced.Equal(test.forced) || !synced.Equal(test.synced) {
				t.Errorf("forced %v and synced %v, want %v and %v", forced, synced, test.forced, test.synced)
			}
		})
	}
}

func TestSyncCountCountsTheSyncsSinceATime(t *testing.T) {
	seen := []syncSight{
		{second(1), "", ""}, {second(2), "", "a"}, {second(3), "db/2", "a"}, {second(4), "db/2", "b"}, {second(5), "db/2", "c"},
	}
	if got := syncCount(seen, second(2)); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
}

func TestSyncsKeepsAllThatWasSeen(t *testing.T) {
	object := func(name, forced, synced string) *unstructured.Unstructured {
		made := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"syncedResourceVersion": synced}}}
		made.SetName(name)
		made.SetAnnotations(map[string]string{"external-secrets.io/force-sync": forced})
		return made
	}
	o := &syncs{seen: map[string][]syncSight{}}
	o.see(object("db", "", "a"))
	o.see(object("db", "db/2@", "a"))
	o.see(object("mail", "", ""))
	got := o.all("db")
	for i := range got {
		got[i].at = time.Time{}
	}
	want := []syncSight{{synced: "a"}, {forced: "db/2", synced: "a"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(syncSight{})); diff != "" {
		t.Errorf("what was seen of db (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"db"}, o.known()); diff != "" {
		t.Errorf("those that were synced (-want +got):\n%s", diff)
	}
}
