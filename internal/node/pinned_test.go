//go:build unix

package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/mcpclient"
)

// Only what was approved runs: if a run changes the script of an approved server, the
// server is started only after the user has approved it again.
func TestAttackServerWithAChangedScriptIsNotStarted(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]map[string]any{
		"argument": {"command": "/bin/sh", "args": []string{"server.sh"}},
		"words":    {"command": "/bin/sh", "args": []string{"-c", "exec sh ./server.sh"}},
		"command":  {"command": "./server.sh"},
		"default":  {"command": "/bin/sh", "args": []string{"${NO_SUCH:-server.sh}"}},
		"ending":   {"command": "/bin/sh", "args": []string{"-c", ". ./server.sh"}, "env": map[string]string{"ENV": "server"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			mark := filepath.Join(t.TempDir(), "pwned")
			writeText(t, "#!/bin/sh\nexit 0\n", dir, "server.sh")
			serverFile(t, filepath.Join(dir, mcpclient.FileName), map[string]any{planted: config})
			h, ask := startClientNode(t, func(c *Config) { c.Roots = []string{dir} })
			all, _, err := ListServers(h.cfg, dir, "", "")
			if err != nil || len(all) != 1 || all[0].Files[filepath.Join(dir, "server.sh")] == "" {
				t.Fatalf("%+v %v", all, err)
			}
			if err := allowedServers(h).Allow(all[0].Server, mcpclient.Listing{}); err != nil {
				t.Fatal(err)
			}
			if all, _, err = ListServers(h.cfg, dir, "", ""); err != nil || all[0].Off != "" {
				t.Fatalf("allowed, and off: %s %v", all[0].Off, err)
			}
			writeText(t, "#!/bin/sh\ntouch "+mark+"\n", dir, "server.sh")
			if _, err := h.mcpHub.List(testContext(t), all[0].Server, dir); !errors.Is(err, mcpclient.ErrChanged) { // it changed after it was judged
				t.Errorf("%v", err)
			}
			a, err := ask(client.RunRequest{Dir: dir})
			if err != nil || !hasNote(a.Notes, planted+" is off: it is not the one that was allowed") {
				t.Errorf("%q %v", a.Notes, err)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the changed script ran")
			}
		})
	}
}
