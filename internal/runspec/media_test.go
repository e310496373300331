package runspec

import (
	"bytes"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// A text in another encoding would grow when it is sent, beyond its reservation (P21), and
// arrive as nonsense.
func TestATextThatIsNotUTF8IsRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{"Latin-1": bytes.Repeat([]byte("a\xe9"), 1000), "UTF-16": []byte("\xff\xfea\x00b\x00"), "a NUL": []byte("a\x00b")} {
		f := client.Attachment{Name: "a.txt", Type: "text/plain", Size: int64(len(data))}
		if err := checkType(f, data); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
