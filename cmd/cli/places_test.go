package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// placesAtOnce is how many runs of one user work in as many directories.
const placesAtOnce = 12

// One user's runs in several directories share the state directory, and each acts in its own
// directory. The run whose process owns the node ends first, and does not end the others.
func TestRunsInTwelveDirectoriesAtOnce(t *testing.T) {
	t.Parallel()
	delay := func(d string) string {
		return fmt.Sprintf("agents:\n  assistant:\n    - calls: [{name: list_dir, args: {path: .}}]\n      delay: %s\n    - text: 'saw {{last}}'\n      delay: %s\n", d, d)
	}
	s := newTestHome(t, map[string]string{"short.yaml": delay("1s"), "long.yaml": delay("4s")})
	outputs := make([]bytes.Buffer, placesAtOnce)
	runs := make([]*exec.Cmd, placesAtOnce)
	for i := range runs {
		dir := filepath.Join(s.home, fmt.Sprintf("project%d", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("only%d.txt", i)), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		script := "long.yaml"
		if i == 0 {
			script = "short.yaml"
		}
		runs[i] = s.command("run", "--dir", ".", "-m", "script/"+filepath.Join(s.home, script), "look")
		runs[i].Dir, runs[i].Stderr = dir, &outputs[i]
		var out bytes.Buffer
		runs[i].Stdout = &out
		if err := runs[i].Start(); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // it shall own the node
			awaitFile(t, filepath.Join(s.home, "state", "troupe", "node.json"))
		}
	}
	moved := 0
	for i, cmd := range runs {
		err := cmd.Wait()
		want := fmt.Sprintf("only%d.txt", i)
		if out := cmd.Stdout.(*bytes.Buffer).String(); err != nil || !strings.Contains(out, want) || strings.Count(out, "only") != 1 {
			t.Errorf("run %d: %v, %q\n%s", i, err, out, outputs[i].String())
		}
		moved += strings.Count(outputs[i].String(), "the node is gone")
	}
	if moved == 0 {
		t.Error("no run has lost the node of the first one")
	}
}

// awaitFile waits until a file exists.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(pollPause) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not come", path)
		}
	}
}
