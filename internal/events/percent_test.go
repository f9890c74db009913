package events

import "testing"

func TestPercentCoding(t *testing.T) {
	tests := []struct {
		name, text, value string
	}{
		{"letters and signs stay", "/api/v1/namespaces/shop~a|b{c}", "/api/v1/namespaces/shop~a|b{c}"},
		{"space, quote and percent are encoded", `a "b" 5%`, "a%20%22b%22%205%25"},
		{"what is not ASCII is encoded byte by byte in upper case", "Zürich 🔑", "Z%C3%BCrich%20%F0%9F%94%91"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := percentEncode(tt.text); got != tt.value {
				t.Errorf("encoded: got %s, want %s", got, tt.value)
			}
			if got, err := percentDecode(tt.value); err != nil || got != tt.text {
				t.Errorf("decoded: got %q, %v; want %q", got, err, tt.text)
			}
		})
	}
}

func TestPercentDecodeTakesWhatOthersWrite(t *testing.T) {
	tests := []struct {
		name, value, want string
	}{
		{"lower-case digits", "%c3%bc", "ü"},
		{"a quoted value", `"a b"`, "a b"},
		{"escapes within quotes", `"a\"b\\c"`, `a"b\c`},
		{"UTF-8 that is not encoded", "ü", "ü"},
		{"one quote alone", `"`, `"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := percentDecode(tt.value); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestPercentDecodeRefuses(t *testing.T) {
	for name, value := range map[string]string{
		"a percent at the end": "a%", "one digit": "a%2", "no digits": "%zz", "an overlong slash": "%C0%AF",
		"a surrogate": "%ED%A0%80", "a cut sequence": "%C3", "a line feed": "a%0Ab", "a DEL": "%7F", "a C1 control": "%C2%85",
		"a noncharacter": "%EF%BF%BE", "raw bytes": "\xff",
	} {
		if got, err := percentDecode(value); err == nil {
			t.Errorf("%s: %q is read as %q", name, value, got)
		}
	}
}
