package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/client"
)

// secretOutside is in files outside of the directory of a run.
const secretOutside = "SECRET-OF-THE-NODE"

// A run may rename what is in its directory, and put links there, while the node builds another run of that directory. The
// node reads nothing outside of it then.
func TestAttackSwappedDirectoryShowsNothingOutside(t *testing.T) {
	t.Parallel()
	for place, swapped := range map[string]string{"a directory of agents": "w/.claude/agents", "the directory of the run": "w"} {
		t.Run(place, func(t *testing.T) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			root, outside := filepath.Join(top, "root"), filepath.Join(top, "outside")
			writeThief(t, filepath.Join(root, "w"), "harmless")
			writeThief(t, outside, secretOutside)
			target := filepath.Join(outside, strings.TrimPrefix(swapped, "w"))
			if err := os.Symlink(target, filepath.Join(root, "link")); err != nil {
				t.Fatal(err)
			}
			h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{root} })
			stop, ended := make(chan struct{}), make(chan error)
			go func() {
				ended <- swapForever(filepath.Join(root, filepath.FromSlash(swapped)), filepath.Join(root, "link"), stop)
			}()
			checkPreviews(t, connectClient(t, h), filepath.Join(root, "w"))
			close(stop)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// writeThief writes an agent that names a file beside it as the schema of its answer, and a guide.
func writeThief(t *testing.T, dir, text string) {
	t.Helper()
	agents := filepath.Join(dir, ".claude", "agents")
	for path, content := range map[string]string{
		filepath.Join(agents, "thief.md"):  "---\nname: thief\ndescription: d\nx-troupe:\n  output_schema: node.json\n---\n" + text,
		filepath.Join(agents, "node.json"): `{"type":"object","description":"` + text + `"}`,
		filepath.Join(dir, "AGENTS.md"):    text,
		filepath.Join(dir, "troupe.yaml"):  "constraints: [" + text + "]\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// checkPreviews makes dry runs in a directory. None may show the secret, and some must be built.
func checkPreviews(t *testing.T, c *client.Client, dir string) {
	t.Helper()
	built := 0
	for range 300 {
		a, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "p", Agent: "thief", Model: "builtin/scout", Dir: dir, DryRun: true})
		text, broken := json.Marshal(a)
		if broken != nil {
			t.Fatal(broken)
		}
		if err == nil {
			built++
		}
		if strings.Contains(string(text), secretOutside) || err != nil && strings.Contains(err.Error(), secretOutside) {
			t.Errorf("a dry run shows what is outside of its directory: %s, %v", text, err)
			return
		}
	}
	if built == 0 {
		t.Error("no dry run was built")
	}
}

// swapForever exchanges a directory and a link that leads out, at changing intervals: a build takes about as long as these.
func swapForever(dir, link string, stop chan struct{}) error {
	for n := 0; ; n++ {
		err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		if err != nil {
			return err
		}
		for began := time.Now(); time.Since(began) < time.Duration(20+n%20*20)*time.Microsecond; {
			runtime.Gosched()
		}
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// A directory that is a named pipe is refused at once: nobody else waits for its build.
func TestAttackDirectoryThatIsAPipeIsRefused(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(top, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{top} })
	c := connectClient(t, h)
	for range 8 { // more than are built at once
		_, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: "builtin/scout", Dir: pipe, DryRun: true})
		checkRefusal(t, "a pipe as dir", err, client.CodeBad, "is not a directory")
	}
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "p", Model: "builtin/scout", Dir: top, DryRun: true}); err != nil {
		t.Errorf("a directory after it: %v", err)
	}
}
