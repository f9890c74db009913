package sources

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyturn/keyturn/internal/sources/openbao"
)

func TestSightingsKeepTheLatestOfEachSecret(t *testing.T) {
	source := storePath.Source()
	tests := []struct {
		name string
		seen []openbao.Observation
		want openbao.Observation
	}{
		{"the later version", []openbao.Observation{written(7, "update", 1), written(8, "update", 2)}, written(8, "update", 2)},
		{"the later version, whichever came first", []openbao.Observation{written(8, "update", 2), written(7, "update", 1)}, written(8, "update", 2)},
		{"the later version, by a server whose clock is behind", []openbao.Observation{written(7, "update", 4), written(8, "update", 2)}, written(8, "update", 2)},
		{"the audit log has more details", []openbao.Observation{written(7, "update", 1), polled(7, openbao.Live, 1, 2)}, written(7, "update", 1)},
		{"the later state of one version", []openbao.Observation{written(7, "update", 1), polled(7, openbao.Deleted, 2, 3)}, polled(7, openbao.Deleted, 2, 3)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSightings()
			for _, seen := range tt.seen {
				if !s.add(seen) {
					t.Fatal("there is no room")
				}
			}
			got := s.get(source)
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			s.done(source, &openbao.Observation{})
			if s.get(source) == nil {
				t.Error("what was seen since is forgotten")
			}
			s.done(source, got)
			if s.get(source) != nil {
				t.Error("an observation is kept after it was done")
			}
		})
	}
}
