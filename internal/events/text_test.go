package events

import (
	"strings"
	"testing"

	"github.com/keyturn/keyturn/tests/testkit"
)

func TestPercentCoding(t *testing.T) {
	for _, tt := range []struct {
		name, text, value string
	}{
		{"letters and signs stay", "/api/v1/namespaces/shop~a|b{c}", "/api/v1/namespaces/shop~a|b{c}"},
		{"space, quote and percent are encoded", `a "b" 5%`, "a%20%22b%22%205%25"},
		{"what is not ASCII is encoded byte by byte in upper case", "Zürich 🔑", "Z%C3%BCrich%20%F0%9F%94%91"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.WantEqual(t, "encoded", tt.value, percentEncode(tt.text))
			if got, err := percentDecode(tt.value); err != nil || got != tt.text {
				t.Errorf("decoded: got %q, %v; want %q", got, err, tt.text)
			}
		})
	}
}

func TestPercentDecodeTakesDigitsInLowerCase(t *testing.T) {
	if got, err := percentDecode("%c3%bc"); err != nil || got != "ü" {
		t.Errorf("got %q, %v", got, err)
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

func TestTextsOfOthersArePrintedAsOneLine(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain words stay", "secret/db is größer: 密码 🔑", "secret/db is größer: 密码 🔑"},
		{"an escape sequence", "a\x1b]52;c;cm0=\x07b\x9b31m", "a ]52;c;cm0= b\uFFFD31m"},
		{"line breaks and tabs", "a\r\nb\u2028c\u2029d\u0085e\tf", "a  b c d e f"},
		{"what reorders text", "a\u202eb\u2066c\u200fd\u061ce", "a b c d e"},
		{"what is no text", "a\xff\x00b", "a\uFFFD b"},
	} {
		t.Run(tt.name, func(t *testing.T) { testkit.WantEqual(t, "text", tt.want, Printable(tt.text)) })
	}
}

func TestTextsOfOthersKeepTheirLines(t *testing.T) {
	const text, want = "NAME\tVERSION\nweb\tv1\x1b[2J\r\u202e\n", "NAME\tVERSION\nweb\tv1 [2J  \n"
	testkit.WantEqual(t, "text", want, PrintableLines(text))
}

func TestALongTextOfOthersIsCutBetweenCharacters(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		size       int
		want       string
	}{
		{"what fits stays", "größer", 8, "größer"},
		{"within a character", "größer", 3, "gr"},
		{"what is longer once it can be printed", "\xffa\xffa", 4, "\uFFFDa"},
	} {
		t.Run(tt.name, func(t *testing.T) { testkit.WantEqual(t, "text", tt.want, Shorten(tt.text, tt.size)) })
	}
}

func TestAHoldIsToldInOneShortLine(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"no value is no hold", "", ""},
		{"a reason", "migration until Monday", "migration until Monday"},
		{"with spaces and lines", "  the\nmigration\r\n\truns ", "the migration runs"},
		{"with what turns the text around", "a\u202eb", "a?b"},
		{"that is too long", strings.Repeat("x", maxHold+1), strings.Repeat("x", maxHold-3) + "..."},
		{"that is cut within a letter", strings.Repeat("é", maxHold), strings.Repeat("é", (maxHold-3)/2) + "..."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := HoldText(tt.value)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := HoldText(got); again != got {
				t.Errorf("what was told becomes %q", again)
			}
		})
	}
}

func FuzzHoldText(f *testing.F) {
	f.Add("the migration\nruns")
	f.Add(strings.Repeat("é \x00", maxHold))
	f.Fuzz(func(t *testing.T, value string) {
		text := HoldText(value)
		if len(text) > maxHold || strings.ContainsAny(text, "\n\r\x00\x1b") || HoldText(text) != text {
			t.Errorf("%q is reported as %q", value, text)
		}
		c := change()
		c.Hold = value
		if read, err := encoded(t, c).Change(); err != nil || read.Hold != text {
			t.Errorf("%q is read as %q: %v", value, read.Hold, err)
		}
	})
}
