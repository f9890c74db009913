package workload

import (
	"testing"

	"github.com/keyturn/keyturn/internal/events"
)

func TestTheSubjectOfARollIsItsChanges(t *testing.T) {
	db := events.Source{Kind: events.KindSecret, Namespace: "shop", Name: "db"}
	write := func(source events.Source, rolled RolledFor) Write {
		return Write{Changes: []Change{{Source: source}}, Rolled: map[string]RolledFor{source.String(): rolled}}
	}
	rolled := RolledFor{Fingerprint: "k0000000a:one", Version: "7", UID: "uid"}
	otherKey := RolledFor{Fingerprint: "k0000000b:other", Version: "7", UID: "uid"}
	class := events.Source{Kind: events.KindSecretProviderClass, Namespace: "shop", Name: "db"}
	for _, tt := range []struct {
		name string
		a, b Write
		same bool
	}{
		{"the same change under another key", write(db, rolled), write(db, otherKey), true},
		{"a later change", write(db, rolled), write(db, RolledFor{Fingerprint: "k0000000a:one", Version: "8", UID: "uid"}), false},
		{"another object of the name", write(db, rolled), write(db, RolledFor{Fingerprint: "k0000000a:one", Version: "7", UID: "other"}), false},
		{"the deletion after it", write(db, rolled), write(db, DeletedAfter(rolled)), false},
		{"what changes without a new version", write(class, rolled), write(class, RolledFor{Fingerprint: "k0000000a:two", Version: "7", UID: "uid"}), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if same := tt.a.subject() == tt.b.subject(); same != tt.same {
				t.Errorf("got the same subject: %t, want %t", same, tt.same)
			}
		})
	}
}
