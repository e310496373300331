package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
	scriptfile "github.com/troupe-run/troupe/model/script"
)

// A client may name any path of the machine as a script. It learns nothing about a file that is not approved:
// not whether it exists, nor its contents, nor its size.
func TestAttackScriptPathRevealsNothingAboutAFile(t *testing.T) {
	t.Parallel()
	out := realDir(t)
	writeText(t, "secret", out, "text")
	writeText(t, "default: [{text: hi}]\n", out, "play")
	writeText(t, "", out, "huge")
	if err := errors.Join(os.Truncate(filepath.Join(out, "huge"), scriptfile.MaxBytes+1), os.Mkdir(filepath.Join(out, "dirs"), 0o700),
		os.Symlink("loop", filepath.Join(out, "loop"))); err != nil {
		t.Fatal(err)
	}
	h := restartedNode(t.TempDir(), realDir(t))
	said := map[string]string{}
	for _, name := range []string{"text", "play", "huge", "dirs", "loop", "none"} {
		path := filepath.Join(out, name)
		_, _, err := h.buildRun(client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: "script/" + path})
		var refused *client.Error
		if !errors.As(err, &refused) {
			t.Fatalf("%s: %v", name, err)
		}
		said[strings.ReplaceAll(refused.Code+" "+refused.Text+" "+refused.Hint, path, "PATH")] = name
	}
	if len(said) != 1 {
		t.Errorf("the answers differ: %q", said)
	}
}
