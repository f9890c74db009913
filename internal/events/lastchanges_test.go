package events

import (
	"slices"
	"testing"
	"time"

	"github.com/keyturn/keyturn/tests/testkit"
)

// place is where an event is on the stream: its epoch, its sequence there, and how many seconds after testTime it was stored.
type place struct {
	epoch  uint32
	seq    uint64
	second int
}

// at returns what is kept of a change of db that is stored at a place.
func at(t testing.TB, p place, alter func(*Change)) *LastChange {
	t.Helper()
	c := version("db", "10")
	alter(&c)
	last, err := NewLastChange(p.seq, testTime.Add(time.Duration(p.second)*time.Second), c)
	testkit.Must(t, err)
	last.Epoch = p.epoch
	return &last
}

// of alters the object and the version of a change, and with that its content.
func of(uid, resourceVersion string) func(*Change) {
	return func(c *Change) {
		*c = version("db", resourceVersion)
		c.UID = uid
	}
}

func gone(uid, resourceVersion string) func(*Change) {
	return func(c *Change) {
		of(uid, resourceVersion)(c)
		c.Verb = VerbDeleted
	}
}

func TestPut(t *testing.T) {
	var (
		db      = Address{Cluster: testCluster, Kind: KindSecret, Namespace: "shop", Name: "db"}
		changed = func(p place, uid, resourceVersion string) *LastChange { return at(t, p, of(uid, resourceVersion)) }
		deleted = func(p place, uid, resourceVersion string) *LastChange { return at(t, p, gone(uid, resourceVersion)) }
	)
	first, second := place{1, 5, 5}, place{1, 6, 6}
	with := func(p place, alter func(*Change)) *LastChange {
		return at(t, p, func(c *Change) { of("u", "10")(c); alter(c) })
	}
	ttl := func(p place, key Key) *LastChange {
		return with(p, func(c *Change) { c.Keys = map[string]Key{"ttl": key} })
	}
	for _, tt := range []struct {
		name       string
		known, put *LastChange
		isNew      bool
		// seq is the sequence of what is known in the end, and uid its object.
		seq uint64
		uid string
	}{
		{"the first event is new", nil, changed(first, "u", "10"), true, 5, "u"},
		{"the same event is not", changed(first, "u", "10"), changed(first, "u", "10"), false, 5, "u"},
		{"an earlier version that is stored later is not", changed(first, "u", "10"), changed(second, "u", "9"), false, 5, "u"},
		{"the longer version is the later one", changed(first, "u", "9"), changed(second, "u", "10"), true, 6, "u"},
		{"a deletion is", changed(first, "u", "10"), deleted(second, "u", "10"), true, 6, "u"},
		{"what was before a deletion is not", deleted(second, "u", "10"), changed(first, "u", "10"), false, 6, "u"},
		{"what a restored stream has from before is not new", changed(first, "v", "3"), changed(place{2, 5, 4}, "u", "10"), false, 5, "v"},
		{"what is published again is not new, but is there", changed(first, "u", "10"), changed(place{2, 1, 6}, "u", "10"), false, 1, "u"},
		{"another fingerprint of the same version is new", changed(first, "u", "10"), with(second, func(c *Change) { c.Fingerprint = sum("9") }), true, 6, "u"},
		{"that it is ignored now is new", changed(first, "u", "10"), with(second, func(c *Change) { c.Ignore = true }), true, 6, "u"},
		{"that it is on hold now is new", changed(first, "u", "10"), with(second, func(c *Change) { c.Hold = "not today" }), true, 6, "u"},
		{
			"that it has buckets now is new", with(first, func(c *Change) { c.Keys, c.Truncated = nil, true }), with(second, func(c *Change) {
				c.Truncated, c.Buckets = true, map[string]Key{"a3": {Fingerprint: sum("6"), ChangedAt: "10"}}
			}), true, 6, "u",
		},
		{
			"that a key does not count now is new", ttl(first, Key{Fingerprint: sum("6")}),
			ttl(second, Key{Fingerprint: sum("6"), Ignored: IgnoredAsStaticCreds}), true, 6, "u",
		},
		{
			"that a key counts again is new", ttl(first, Key{Fingerprint: sum("6"), Ignored: IgnoredAsStaticCreds}),
			ttl(second, Key{Fingerprint: sum("6"), Since: "10"}), true, 6, "u",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLastChanges(Origins{Cluster: testCluster})
			if tt.known != nil {
				l.Put(db, tt.known)
			}
			before, isNew := l.Put(db, tt.put)
			if isNew != tt.isNew {
				t.Errorf("new: %t", isNew)
			}
			if want := tt.known; isNew && before != want {
				t.Errorf("before it was %+v, want %+v", before, want)
			}
			if got, _ := l.last(db.Source()); got.Seq != tt.seq || got.UID != tt.uid {
				t.Errorf("known is %s at %d, want %s at %d", got.UID, got.Seq, tt.uid, tt.seq)
			}
		})
	}
}

func TestAnEventThatCannotBeReadLeavesWhatIsKnown(t *testing.T) {
	l := NewLastChanges(Origins{Cluster: testCluster})
	db := Address{Cluster: testCluster, Kind: KindSecret, Namespace: "shop", Name: "db"}
	unreadable := func(seq uint64) *LastChange { return &LastChange{Seq: seq, Epoch: 1} }
	want := func(version string, isUnreadable bool) {
		t.Helper()
		var got string
		if last, _ := l.last(db.Source()); last != nil {
			got = last.ResourceVersion
		}
		if got != version || l.IsUnreadable(db.Source()) != isUnreadable {
			t.Errorf("known is %q, unreadable: %t; want %q, %t", got, l.IsUnreadable(db.Source()), version, isUnreadable)
		}
		if change, c := l.Change(db.Source()); (c != nil) != (version != "" && !isUnreadable) || c != nil && change.ResourceVersion != version {
			t.Errorf("the change is %+v, want %q if that can be read", change, version)
		}
		if _, listed := l.Unreadable()[db]; listed != isUnreadable {
			t.Errorf("it is listed as unreadable: %t, want %t", listed, isUnreadable)
		}
	}
	put := func(c *LastChange, wantNew bool) {
		t.Helper()
		if _, isNew := l.Put(db, c); isNew != wantNew {
			t.Errorf("%d: new: %t", c.Seq, isNew)
		}
	}
	want("", false)
	put(unreadable(1), false)
	want("", true)
	put(at(t, place{1, 2, 2}, of("u", "10")), true)
	want("10", false)
	put(unreadable(1), false)
	want("10", false)
	put(unreadable(5), false)
	want("10", true)
	put(at(t, place{1, 3, 3}, of("u", "11")), true) // It was on its way when the unreadable one was read.
	want("11", true)
	put(at(t, place{1, 6, 6}, of("u", "11")), true) // Whoever asked meanwhile got no answer.
	want("11", false)
}

func TestTheLastChangeOfAStoreIsTheNewestOfAllClusters(t *testing.T) {
	l := NewLastChanges(Origins{Cluster: testCluster, StoresFrom: []string{"hub"}})
	source := storePath.Source()
	put := func(cluster, version string, seq uint64) (before *LastChange, isNew bool) {
		t.Helper()
		c := changeOf(KindOpenBao, VerbRotated)
		c.ResourceVersion, c.ChangedAt, c.Fingerprint = version, version, sum(version[:1])
		return l.Put(Address{Cluster: cluster, Kind: KindOpenBao, Name: source.Name}, kept(t, seq, c))
	}
	for i, step := range []struct {
		cluster, version string
		isNew            bool
		// before is the version before, and last the one in the end.
		before, last string
	}{
		{"hub", "100", true, "", "100"},
		{testCluster, "90", false, "", "100"},
		{testCluster, "200", true, "100", "200"}, // This cluster watches it again.
		{"hub", "200", false, "", "200"},
		{"hub", "300", true, "200", "300"},
		{"west", "400", false, "", "300"}, // Nobody watches for this cluster there.
	} {
		before, isNew := put(step.cluster, step.version, uint64(i+1))
		if isNew != step.isNew || before != nil && before.ResourceVersion != step.before || before == nil && step.before != "" {
			t.Errorf("step %d: new: %t, before it was %+v", i+1, isNew, before)
		}
		if _, got := l.Change(source); got.ResourceVersion != step.last {
			t.Errorf("step %d: the last is %s, want %s", i+1, got.ResourceVersion, step.last)
		}
	}
	change, last := l.Change(source)
	if last == nil || change.Cluster != "hub" || change.ResourceVersion != "300" || last.Seq != 5 {
		t.Errorf("the change is %+v, want that of the fifth event, which is of the hub", change)
	}
	var names []string
	l.Each(KindOpenBao, "shop", func(name string, c *LastChange) { names = append(names, name+" "+c.ResourceVersion) })
	testkit.WantEqual(t, "each", []string{source.Name + " 300"}, names)
	var all []string
	l.All(func(source Source, c *LastChange) { all = append(all, source.Name+" "+c.ResourceVersion) })
	testkit.WantEqual(t, "all", names, all)
}

func TestEachIsOfOneKindAndNamespace(t *testing.T) {
	l := NewLastChanges(Origins{Cluster: testCluster})
	for _, source := range []Source{
		{KindSecret, "shop", "a"}, {KindSecret, "shop", "b"}, {KindConfigMap, "shop", "c"}, {KindSecret, "bank", "d"},
	} {
		l.Put(Address{Cluster: testCluster, Kind: source.Kind, Namespace: source.Namespace, Name: source.Name}, at(t, place{1, 1, 1}, of("u", "10")))
	}
	var names []string
	l.Each(KindSecret, "shop", func(name string, _ *LastChange) { names = append(names, name) })
	slices.Sort(names)
	testkit.WantEqual(t, "each", []string{"a", "b"}, names)
	var all []string
	l.All(func(source Source, _ *LastChange) { all = append(all, source.Namespace+"/"+source.String()) })
	slices.Sort(all)
	testkit.WantEqual(t, "all", []string{"bank/secret/d", "shop/configmap/c", "shop/secret/a", "shop/secret/b"}, all)
}

func TestADeletionIsForgottenWhenTheStreamHasDroppedIt(t *testing.T) {
	l := NewLastChanges(Origins{Cluster: testCluster})
	there, away := Source{KindSecret, "shop", "there"}, Source{KindSecret, "bank", "away"}
	put := func(source Source, alter func(*Change)) {
		l.Put(Address{Cluster: testCluster, Kind: source.Kind, Namespace: source.Namespace, Name: source.Name}, at(t, place{1, 1, 0}, alter))
	}
	put(there, of("u", "10"))
	put(away, gone("u", "10"))
	l.Forget(testTime.Add(TombstoneTTL))
	if _, last := l.Change(away); last == nil {
		t.Error("the deletion is forgotten while the stream may still have it")
	}
	l.Forget(testTime.Add(TombstoneTTL + time.Hour))
	_, alive := l.Change(there)
	if _, last := l.Change(away); alive == nil || last != nil || len(l.changes) != 1 {
		t.Errorf("it has %+v", l.changes)
	}
}
