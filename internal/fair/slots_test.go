package fair

import (
	"slices"
	"testing"
)

func TestANamespaceHasFewerSlotsThanAreFree(t *testing.T) {
	tests := []struct {
		name  string
		limit int
		alone bool
		taken []string
		want  []string // the namespaces of shop, crm and erp that may take one
	}{
		{name: "anyone takes the first", limit: 1, want: []string{"shop", "crm", "erp"}},
		{name: "nobody takes one more than there are", limit: 1, taken: []string{"shop"}},
		{name: "one takes half", limit: 5, taken: []string{"shop", "shop"}, want: []string{"shop", "crm", "erp"}},
		{name: "and no more", limit: 5, taken: []string{"shop", "shop", "shop"}, want: []string{"crm", "erp"}},
		{name: "of what others leave", limit: 5, taken: []string{"shop", "shop", "shop", "crm"}, want: []string{"erp"}},
		{name: "unless it is alone", limit: 5, alone: true, taken: []string{"shop", "shop", "shop", "shop"}, want: []string{"shop", "crm", "erp"}},
		{name: "and even then no more than there are", limit: 2, alone: true, taken: []string{"shop", "shop"}},
		{name: "more may be taken than there are", limit: 1, taken: []string{"shop", "crm"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := NewSlots(test.limit, test.alone)
			for _, namespace := range test.taken {
				s.Take(namespace)
			}
			var got []string
			for _, namespace := range []string{"shop", "crm", "erp"} {
				if s.MayTake(namespace) {
					got = append(got, namespace)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, namespace := range test.taken {
				s.Return(namespace)
			}
			if s.Free() != test.limit || len(s.taken) != 0 {
				t.Errorf("%d are free after all were returned, and these are taken: %v", s.Free(), s.taken)
			}
		})
	}
}
