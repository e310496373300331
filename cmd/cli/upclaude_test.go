package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/client"
)

// The nodes of `troupe up` apply the user's own files of Claude Code: rules that deny and hooks to all runs; rules that allow,
// variables and CLAUDE.md to those that the user's own commands start, and not to those of an HTTP client.
func TestUpAppliesTheUsersFilesOfClaudeCode(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{
		".claude/settings.json": `{"env": {"GREETING": "hello"}, "permissions": {"allow": ["Bash(*)"], "deny": ["Bash(rm:*)"]},
			"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "touch ../hooked-$GREETING"}]}]}}`,
		"work/team/hand.md": "---\nname: hand\ndescription: Works.\ntools: Bash\n---\nWork.\n",
		"work/note.md":      "x",
		"work/show.yaml":    "repeat: true\ndefault:\n  - calls: [{name: shell, args: {command: 'echo \"<$GREETING>\"'}}]\n  - text: '{{last}}'\n",
		"work/remove.yaml":  "repeat: true\ndefault:\n  - calls: [{name: shell, args: {command: 'rm note.md'}}]\n  - text: '[done] {{last}}'\n",
	})
	bin, err := exec.LookPath("upnode")
	if err != nil {
		t.Fatal(err)
	}
	up := s.command("up", "--nodes", "1", "--lazy", "--http", "127.0.0.1:0", "--node-binary", bin, "--root", filepath.Join(s.home, "work"))
	out, err := up.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = up.Process.Signal(os.Interrupt)
		_ = up.Wait()
	}()
	log := watchOutput(out)
	log.until(t, "node-1 | ready ")
	s.waitForNodes(1)
	run := func(script string) (text string) {
		t.Helper()
		said, err := s.command("run", "--dir", "work", "--agents", "work/team", "--agent", "hand", "-m", "script/"+script, "p").CombinedOutput()
		if err != nil || strings.Contains(string(said), "does not apply") {
			t.Fatalf("%v\n%s", err, said)
		}
		return string(said)
	}
	if text := run("work/show.yaml"); !strings.Contains(text, "<hello>") {
		t.Error(text)
	}
	if _, err := os.Stat(filepath.Join(s.home, "hooked-hello")); err != nil {
		t.Error("its hook did not run:", err)
	}
	if text := run("work/remove.yaml"); !strings.Contains(text, "the rule shell(rm:*)") {
		t.Error(text)
	}

	url, token := s.httpAccess(log, "node-1")
	work := filepath.Join(s.home, "work")
	for script, want := range map[string]string{"show.yaml": "<>", "remove.yaml": "the rule shell(rm:*)"} {
		id := client.NewID()
		body := fmt.Sprintf(`{"run_id":%q,"prompt":"p","dir":%q,"agents":%q,"agent":"hand","model":"script/%s","yes":true}`, id, work, filepath.Join(work, "team"), filepath.Join(work, script))
		if said := postRun(t, url, token, body); !strings.Contains(said, "~/.claude/settings.json: without effect here: env of shell commands") {
			t.Error(said)
		}
		if text, err := s.command("result", "--wait", id).CombinedOutput(); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", script, err, text)
		}
	}
}

// httpAccess returns the address and the token of a node of `troupe up`.
func (s testHome) httpAccess(log *watchedOutput, name string) (url, token string) {
	s.t.Helper()
	_, rest, _ := strings.Cut(log.String(), name+" | ready ")
	url, _, _ = strings.Cut(rest, " ")
	text, err := os.ReadFile(filepath.Join(s.home, "state", "troupe", "http.token"))
	if err != nil {
		s.t.Fatal(err)
	}
	return url, strings.TrimSpace(string(text))
}

// postRun starts a run over HTTP, and returns the answer.
func postRun(t *testing.T, url, token, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/api/v1/runs", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	said, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusCreated {
		t.Fatalf("%d %v %s", reply.StatusCode, err, said)
	}
	return string(said)
}
