package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// The command line that a node prints reads the token where any terminal of the user finds it: the nodes of troupe up get
// that of the state directory in their environment.
func TestHTTPHintNamesTheStoredToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	token := statedir.NewHTTPToken()
	if err := statedir.WriteHTTPToken(dir, token); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": "$(cat " + statedir.HTTPTokenPath(dir) + ")", token: "$(cat " + statedir.HTTPTokenPath(dir) + ")", statedir.NewHTTPToken(): "$" + tokenVariable} {
		t.Setenv(tokenVariable, given)
		if line := new(httpFlags).hint("http://127.0.0.1:8420", dir); !strings.Contains(line, "Bearer "+want+`" | curl -H @- http://127.0.0.1:8420/api/v1/runs`) || strings.Contains(line, token) {
			t.Errorf("%s, want %s", line, want)
		}
	}
}
