package permission_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/troupe-run/troupe/internal/permission"
)

// Nothing that a person does not see stands between the letters that they read.
func TestAttackNoCharacterIsUnseen(t *testing.T) {
	t.Parallel()
	for _, c := range []rune{0x00, 0x1b, 0x7f, 0x85, 0xa0, 0xad, 0x034f, 0x061c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180c, 0x180d, 0x180e, 0x180f, 0x200b, 0x200e, 0x2028, 0x2029, 0x202e, 0x2060, 0x2064,
		0x2066, 0x2069, 0x206f, 0x2800, 0x3000, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x16fe4, 0x1d159, 0x1d173, 0xe0000, 0xe0001, 0xe0041, 0xe007f, 0xe0100, 0xe01ef, 0xf0000, 0x10ffff} {
		shown := permission.Show("shell", `{"command":"rm a`+jsonRune(c)+`b"}`)
		if strings.ContainsRune(shown, c) || !strings.HasPrefix(shown, `$ rm a\`) || !strings.HasSuffix(shown, "b") {
			t.Errorf("U+%04X is shown as %q", c, shown)
		}
	}
	for c := rune(' '); c <= unicode.MaxRune; c++ {
		if unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Bidi_Control, unicode.Variation_Selector, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Co, unicode.Noncharacter_Code_Point) && strings.ContainsRune(permission.Visible(string(c)), c) {
			t.Errorf("U+%04X is not escaped", c)
		}
	}
	const plain = "Straße 東京 שלום e\u0301 👍 a|b\tc\nd"
	if got := permission.Visible(plain); got != plain {
		t.Errorf("%q", got)
	}
}

// jsonRune writes a character as a JSON string may have it.
func jsonRune(c rune) string {
	if c < ' ' {
		return map[rune]string{0: `\u0000`, 0x1b: `\u001b`}[c]
	}
	return string(c)
}

// The name of a file cannot pretend to be other lines of the change.
func TestAttackANameWithALineBreakIsOneLine(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"write_file", "edit_file"} {
		shown := permission.Show(tool, `{"path":"a\n+harmless\n--- b\tc","content":"x","old":"y","new":"x"}`)
		if first, _, _ := strings.Cut(shown, "\n"); !strings.HasSuffix(first, `a\n+harmless\n--- b\tc`) {
			t.Errorf("%s: %q", tool, shown)
		}
	}
}
