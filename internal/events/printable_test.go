package events

import "testing"

func TestTextsOfOthersArePrintedAsOneLine(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain words stay", "secret/db is größer: 密码 🔑", "secret/db is größer: 密码 🔑"},
		{"an escape sequence", "a\x1b]52;c;cm0=\x07b\x9b31m", "a ]52;c;cm0= b\uFFFD31m"},
		{"a control character of two bytes", "a\u009b31m", "a 31m"},
		{"line breaks and tabs", "a\r\nb\u2028c\u2029d\u0085e\tf", "a  b c d e f"},
		{"what reorders text", "a\u202eb\u2066c\u200fd\u061ce", "a b c d e"},
		{"what is not seen", "a\u200bb\ufeffc\u00add\U000e0041", "a b c d "},
		{"what is no text", "a\xff\x00b", "a\uFFFD b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Printable(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestALongTextOfOthersIsCutBetweenCharacters(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		size       int
		want       string
	}{
		{"what fits stays", "größer", 8, "größer"},
		{"what does not is cut", "größer", 7, "größe"},
		{"within a character", "größer", 3, "gr"},
		{"what is longer once it can be printed", "\xffa\xffa", 4, "\uFFFDa"},
		{"line breaks", "a\nb", 3, "a b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Shorten(tt.text, tt.size); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
