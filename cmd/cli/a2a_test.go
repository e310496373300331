package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/test/a2apeer"
)

// The user's troupe.yaml says where an agent of A2A is and which variable has its token; an agent file names it as a delegate.
// A directory's troupe.yaml cannot say it.
//
//behaviour:shows H5
func TestAgentsOfA2AAreInTheUsersSettings(t *testing.T) {
	t.Parallel()
	p := a2apeer.Start(t, true, func(w http.ResponseWriter, _ a2apeer.Request) {
		a2apeer.Send(w, a2apeer.TaskEvent("1", "WORKING"), a2apeer.TextEvent("1", "a", "A is safe."), a2apeer.StatusEvent("1", "COMPLETED", ""))
	})
	settings := fmt.Sprintf("a2a_agents:\n  reviewer: {url: %q, token_env: REVIEWER_TOKEN}\n", p.URL)
	s := newTestHome(t, map[string]string{
		"config/troupe/troupe.yaml":    settings,
		"config/troupe/agents/boss.md": "---\nname: boss\ndescription: Delegates.\nx-troupe: {delegates: [a2a/reviewer, a2a/other]}\n---\nDelegate.\n",
		"play.yaml":                    "agents:\n  boss:\n    - calls: [{name: delegate, args: {agent: a2a/reviewer, task: \"Review A.\"}}]\n    - text: \"It said: {{last}}\"\n",
		"project/troupe.yaml":          settings,
		"project/play.yaml":            "default: [{text: x}]\n",
	})
	cmd := s.command("run", "-q", "-m", "script/play.yaml", "--agent", "boss", "--yes", "Have A reviewed.")
	cmd.Env = append(cmd.Env, "REVIEWER_TOKEN=tk-reviewer-77")
	out, err := cmd.Output()
	if err != nil || string(out) != "It said: A is safe.\n" {
		t.Fatalf("%q %v", out, err)
	}
	if got := p.Requests("SendStreamingMessage"); len(got) != 1 || got[0].Task() != "Review A." || got[0].Header.Get("Authorization") != "Bearer tk-reviewer-77" {
		t.Errorf("%+v", got)
	}
	if out, err = s.command("fixture", "last").CombinedOutput(); err != nil || !strings.Contains(string(out), "the case ends as the run did (completed), and passes") {
		t.Errorf("fixture: %v %s", err, out)
	}
	if out, code := s.outputOf("agents", "validate", "config/troupe/agents/boss.md"); code != 0 || !strings.Contains(out, "a2a/other") || strings.Contains(out, `"a2a/reviewer"`) {
		t.Errorf("validate: %d %s", code, out)
	}
	if out, code := s.outputOf("config", "validate", "config/troupe/troupe.yaml"); code != 0 {
		t.Errorf("validate: %d %s", code, out)
	}
	cmd = s.command("run", "-q", "-m", "script/play.yaml", "Hello")
	cmd.Dir += "/project"
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "a2a_agents: a directory cannot say where agents of other programs are") {
		t.Errorf("a directory's file: %v %s", err, out)
	}
}
