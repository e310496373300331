package agentfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// Other tools read front matter that is not valid YAML: a description with a colon in it,
// or one of many lines. Existing files must load, so such text is quoted and parsed again;
// structure stays as it is.

// parseFrontMatter reads YAML to a mapping.
func (d *decoder) parseFrontMatter(front []byte) (*yaml.Node, error) {
	if line, what := findUnreadable(front); what != "" {
		return nil, &Problem{d.path, line + 1, fmt.Errorf("%w: %s", ErrFrontMatter, what)}
	}
	root, err := parseDocument(front)
	for _, mend := range []func([]byte) ([]byte, bool){quoteTexts, gatherTexts} {
		if err == nil {
			break
		}
		lenient, changed := mend(front)
		if !changed {
			continue
		}
		if again, retry := parseDocument(lenient); retry == nil && again.Kind == yaml.MappingNode {
			d.addNote(0,
				"the front matter is not valid YAML and was read as plain text; put quotes around values that contain \": \", "+
					"or begin them with |")
			root, err = again, nil
		}
	}
	if err != nil {
		line, text := yamlLine(err)
		return nil, &Problem{d.path, line, fmt.Errorf("%w: %s", ErrFrontMatter, text)}
	}
	if root.Kind != yaml.MappingNode {
		return nil, &Problem{d.path, root.Line + 1, fmt.Errorf("%w: it must be a mapping of keys to values", ErrFrontMatter)}
	}
	if line, what := findForbidden(root, 0); what != "" {
		return nil, &Problem{d.path, line + 1, fmt.Errorf("%w: %s", ErrFrontMatter, what)}
	}
	return root, nil
}

// findUnreadable finds bytes that are not text.
func findUnreadable(front []byte) (line int, what string) {
	for i, text := range bytes.Split(front, []byte("\n")) {
		switch {
		case bytes.IndexByte(text, 0) >= 0:
			return i + 1, "there is a NUL byte; is it a text file?"
		case !utf8.Valid(text):
			return i + 1, "it is not UTF-8; save it as UTF-8"
		}
	}
	return 0, ""
}

// isUTF16 recognizes the byte order marks with which other programs begin such files.
func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF})
}

var yamlAt = lazyregexp.New(`^line (\d+): `)

// yamlLine splits a parser's message into the line of the file, 0 if the message has none,
// and the text.
func yamlLine(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	m := yamlAt.FindStringSubmatch(text)
	if m == nil {
		return 0, text
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, text
	}
	return n + 1, text[len(m[0]):]
}

var plainText = lazyregexp.New(`^([A-Za-z][\w-]*):[ \t]+([^"'\[{|>&!#\s].*)$`)

// quoteTexts quotes top-level values that contain ": " or " #", or begin with a character
// that YAML reserves.
func quoteTexts(front []byte) (lenient []byte, changed bool) {
	lines := strings.Split(string(front), "\n")
	for i, line := range lines {
		m := plainText.FindStringSubmatch(strings.TrimSuffix(line, "\r"))
		if m != nil && (strings.Contains(m[2], ": ") || strings.HasSuffix(m[2], ":") || strings.Contains(m[2], " #") || strings.ContainsRune("*@%`", rune(m[2][0]))) {
			lines[i] = m[1] + ": '" + strings.ReplaceAll(m[2], "'", "''") + "'"
			changed = true
		}
	}
	return []byte(strings.Join(lines, "\n")), changed
}

var keyLine = lazyregexp.New(`^([A-Za-z][\w-]*):(?:[ \t]+(.*))?$`)

// gatherTexts makes each known key with a plain text behind it one quoted text,
// with all lines up to the next known key. The lines keep their numbers.
func gatherTexts(front []byte) (lenient []byte, changed bool) {
	lines := strings.Split(strings.ReplaceAll(string(front), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); {
		m := keyLine.FindStringSubmatch(lines[i])
		end := i + 1
		for end < len(lines) && !knownLine(lines[end]) {
			end++
		}
		if m != nil && knownLine(lines[i]) && m[2] != "" && !strings.ContainsAny(m[2][:1], `"'[{|>&!#`) {
			text, err := json.Marshal(strings.TrimSpace(strings.Join(append([]string{m[2]}, lines[i+1:end]...), "\n")))
			if err == nil { // strings always marshal to JSON
				lines[i] = m[1] + ": " + string(text)
			}
			for k := i + 1; k < end; k++ {
				lines[k] = ""
			}
			changed = true
		}
		i = end
	}
	return []byte(strings.Join(lines, "\n")), changed
}

func knownLine(line string) bool {
	m := keyLine.FindStringSubmatch(line)
	return m != nil && topFields[m[1]] != nil
}
