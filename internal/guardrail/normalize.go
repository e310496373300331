package guardrail

import (
	"bytes"
	"encoding/base64"
	"html"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// lookAlikes are letters of other scripts that look like Latin ones. They count as these only within a word that has
// Latin letters too, so that words of those scripts stay what they are.
var lookAlikes = pairLetters("аaвbсcеeнhіiјjкkӏlмmоoрpԛqѕsтtуyхxԝwɡgոnսuһhԁdαaβbεeηnιiκkνvοoρpτtυuχxγyωwıiɑa")

// smallCapitals are Latin letters that only look like capitals.
var smallCapitals = pairLetters("ᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpꞯqʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz")

// pairLetters reads pairs: a letter, and the one that it counts as.
func pairLetters(pairs string) map[rune]rune {
	m, list := map[rune]rune{}, []rune(pairs)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}

// digitLetters are digits and signs that replace letters within a word.
var digitLetters = map[rune]rune{'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's', '7': 't', '@': 'a', '$': 's'}

// plainText returns a text with plain letters for styled ones (full width, mathematical, circled, with marks above or
// below), with line feeds for all ends of lines, and without characters that take no room.
func plainText(text string) string { return strings.Map(plainRune, norm.NFKD.String(text)) }

// plainRune returns the letter behind a styled one that has no decomposition in Unicode; -1 leaves a character out.
func plainRune(r rune) rune {
	switch {
	case r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
		return '\n'
	case r < utf8.RuneSelf:
		return r
	case unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	case r >= 0x1F150 && r <= 0x1F169: // in a black circle
		return 'a' + r - 0x1F150
	case r >= 0x1F170 && r <= 0x1F189: // in a black square
		return 'a' + r - 0x1F170
	}
	if l, ok := smallCapitals[r]; ok {
		return l
	}
	return r
}

// words returns a text as lower-case words with one space between them. Signs between words are gone, so that markup
// does not hide a sentence, and so are \n, \r and \t, as JSON writes the ends of lines. Letters with a space after each
// become one word.
func words(text string) []byte {
	var out bytes.Buffer
	out.Grow(len(text) + 2)
	out.WriteByte(' ')
	var word []rune
	gap, spelled := 2, false // the width of the gap before the word; whether the words before it were single letters
	flush := func() {
		if len(word) == 0 {
			return
		}
		single := len(word) == 1 && unicode.IsLetter(word[0])
		if joins := single && spelled && gap == 1; !joins && out.Len() > 1 {
			out.WriteByte(' ')
		}
		writeWord(&out, word)
		spelled, gap, word = single, 0, word[:0]
	}
	escaped := false // the rune before is a backslash
	for _, r := range plainText(text) {
		r = unicode.ToLower(r)
		endsLine := escaped && (r == 'n' || r == 'r' || r == 't')
		escaped = r == '\\'
		switch {
		case endsLine:
			gap++
		case unicode.IsLetter(r) || unicode.IsDigit(r) || (r == '@' || r == '$') && len(word) > 0:
			word = append(word, r)
		case r == '\'' || r == '’':
		default:
			flush()
			gap++
		}
	}
	flush()
	out.WriteByte(' ')
	return out.Bytes()
}

// writeWord writes a word. Within a word that has Latin letters, look-alikes and digits count as Latin letters.
func writeWord(out *bytes.Buffer, word []rune) {
	latin, other := 0, false
	for _, r := range word {
		if r >= 'a' && r <= 'z' {
			latin++
		} else {
			other = true
		}
	}
	for _, r := range word {
		if other && latin > 1 {
			if l, ok := lookAlikes[r]; ok {
				r = l
			} else if l, ok := digitLetters[r]; ok {
				r = l
			}
		}
		out.WriteRune(r)
	}
}

// tagText returns the text that is written in tag characters, which no screen shows, except the names of flags.
func tagText(text string) string {
	if !strings.Contains(text, "\U000E0000"[:2]) { // the first bytes of all tags
		return ""
	}
	var out strings.Builder
	region := 0 // the tags that may still name the region of a flag
	for _, r := range text {
		switch isTag := r >= 0xE0020 && r <= 0xE007E; {
		case r == blackFlag:
			region = regionTagsMax
		case isTag && region > 0:
			region--
		case isTag:
			out.WriteRune(r - 0xE0000)
		default:
			region = 0
		}
	}
	return out.String()
}

// A black flag and up to six tags are the flag of a region, such as England's.
const (
	blackFlag     = '\U0001F3F4'
	regionTagsMax = 6
)

const (
	base64BytesMin = 32 // a shorter run is rather a word or a name
	percentsMin    = 4
)

// decodedText returns what a text has in base64, in percent signs, in HTML entities and in the escapes of JSON, as
// far as that is text. It decodes once: what is encoded twice stays hidden.
func decodedText(text string) string {
	var out strings.Builder
	if plain := html.UnescapeString(text); plain != text {
		out.WriteString(plain + "\n")
	}
	if strings.Contains(text, `\u`) {
		out.WriteString(jsonEscapes.ReplaceAllStringFunc(text, unescapeJSON) + "\n")
	}
	for run := range runsOf(text, isBase64, base64BytesMin) {
		data, err := base64.RawStdEncoding.DecodeString(run[:len(run)-len(run)%4])
		if err == nil && isText(data) {
			out.Write(data)
			out.WriteByte('\n')
		}
	}
	for run := range runsOf(text, isInURL, 3*percentsMin) {
		if strings.Count(run, "%") >= percentsMin {
			out.WriteString(percentEscapes.ReplaceAllStringFunc(run, unescapePercent) + "\n")
		}
	}
	return out.String()
}

var (
	jsonEscapes    = lazyregexp.New(`(?:\\u[0-9A-Fa-f]{4})+`)
	percentEscapes = lazyregexp.New(`%[0-9A-Fa-f]{2}`)
)

// unescapeJSON decodes \uXXXX, one or more. Two of them may be one character.
func unescapeJSON(escapes string) string {
	var units []uint16
	for e := range strings.SplitSeq(escapes[len(`\u`):], `\u`) {
		n, _ := strconv.ParseUint(e, 16, 16) // jsonEscapes admits no other text
		units = append(units, uint16(n))
	}
	return string(utf16.Decode(units))
}

// unescapePercent decodes %XX.
func unescapePercent(escape string) string {
	n, _ := strconv.ParseUint(escape[1:], 16, 8) // percentEscapes admits no other text
	return string([]byte{byte(n)})
}

// runsOf yields the runs of at least least bytes of a class.
func runsOf(text string, is func(byte) bool, least int) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin := 0
		for i := 0; i <= len(text); i++ {
			if i < len(text) && is(text[i]) {
				continue
			}
			if i-begin >= least && !yield(text[begin:i]) {
				return
			}
			begin = i + 1
		}
	}
}

func isBase64(c byte) bool { return isAlphanumeric(c) || c == '+' || c == '/' }

func isInURL(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("%_.~-", c) >= 0 }

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// isText reports whether decoded bytes are text: hashes and pictures are not.
func isText(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for _, c := range data {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7F {
			return false
		}
	}
	return true
}
