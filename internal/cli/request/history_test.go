package request

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/cli/exit"
)

// A file that is no history is refused before anybody is asked, in words of the
// file and with a remedy.
func TestAFileThatIsNoHistoryIsRefused(t *testing.T) {
	for doc, want := range map[string]string{
		"":                             "it is empty",
		"{\n\"form\": 1,":              "it ends in the middle",
		"{\"form\": 1,\n}":             "line 2: invalid character '}'",
		"[]":                           "line 1: the document cannot be a array",
		"{\"form\":1}{}":               "something follows the document",
		"{\"form\":1,\"mine\":2}":      "line 1: unknown field \"mine\"",
		"{\"form\":2}":                 "form: it is 2, this program reads 1",
		"{\"form\":1,\"messages\":[]}": "messages: there are none",
		strings.Repeat("[", 100_000):   "exceeded max depth",
		"{\"form\":1,\n\"messages\":[{\"role\":\"user\",\n\"text\":5}]}":                                    "line 3: messages.text cannot be a number",
		"{\"form\":1,\"messages\":[{\"role\":\"user\",\"text\":\"" + strings.Repeat("x", 300_000) + "\"}]}": "message 0: it is too large",
	} {
		path := filepath.Join(t.TempDir(), "history.json")
		if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readHistory(path)
		var f *exit.Failure
		if !errors.As(err, &f) || !strings.Contains(err.Error(), want) || f.Hint == "" || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%.40q: %v, want %s", doc, err, want)
		}
	}
}
