package externalsecret

import "testing"

const testTraceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestParseForceSync(t *testing.T) {
	const event = "bao/root/secret/shop/db@eu/7"
	for _, test := range []struct {
		name, value string
		want        ForceSync
		ok          bool
	}{
		{"of an event with a trace", event + "@" + testTraceparent, ForceSync{Event: event, Traceparent: testTraceparent}, true},
		{"for the second time again", event + "-r2@" + testTraceparent, ForceSync{event, 2, testTraceparent}, true},
		{"of one whose path has a line end", "bao/root/a\nb/1@", ForceSync{Event: "bao/root/a\nb/1"}, true},
		{"the time, as the documentation of the operator has it", "1763752800", ForceSync{}, false},
		{"no trace behind the last at-sign", event + "@" + testTraceparent + "0", ForceSync{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := ParseForceSync(test.value)
			if got != test.want || ok != test.ok {
				t.Errorf("got %+v, %t, want %+v, %t", got, ok, test.want, test.ok)
			}
			if ok && got.String() != test.value {
				t.Errorf("it is written as %q, want %q", got, test.value)
			}
		})
	}
}

func FuzzParseForceSync(f *testing.F) {
	f.Add("bao/root/secret/shop/db/7-r1@" + testTraceparent)
	f.Add("a-r1-r2@")
	f.Fuzz(func(t *testing.T, value string) {
		if got, ok := ParseForceSync(value); ok && got.String() != value {
			t.Errorf("%q is written as %q", value, got)
		}
	})
}
