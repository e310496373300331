package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// The team of the tests: triage hands off to billing, which knows what was said before.
var handoffTeam = map[string]string{
	"team/triage.md":  "---\nname: triage\ndescription: Finds out who can help.\nx-troupe: {handoffs: [billing], delegates: []}\n---\nYou find out who can help.\n",
	"team/billing.md": "---\nname: billing\ndescription: Refunds orders.\nx-troupe: {delegates: []}\n---\nYou refund orders.\n",
	"play.yaml": `
agents: # a reply for each that the history holds
  triage:
    - {text: "Which order?"}
    - {text: "Billing takes over.", calls: [{name: handoff, args: {agent: billing, message: "Refund order 7."}}]}
    - {text: "triage again: {{user}}"}
    - {text: "triage again: {{user}}"}
    - {text: "triage again: {{user}}"}
    - {text: "triage again: {{user}}"}
  billing:
    - {text: "unheard"}
    - {text: "billing: refunded."}
    - {text: "billing: refunded."}
    - {text: "billing still: {{user}}"}
    - {text: "billing still: {{user}}"}
`,
}

// A run whose agent hands off ends with the answer of the other agent, which has read the conversation; what it looked like
// is in its tree, its events and its description.
//
//behaviour:shows K9
func TestARunIsHandedOff(t *testing.T) {
	t.Parallel()
	files := map[string]string{"play.yaml": strings.Replace(handoffTeam["play.yaml"], "    - {text: \"Which order?\"}\n", "", 1)}
	for name, text := range handoffTeam {
		if name != "play.yaml" {
			files[name] = text
		}
	}
	s := newTestHome(t, files)
	team := []string{"--agents", "team"}
	out, code := s.outputOf(append([]string{"run", "-q", "-m", "script/play.yaml", "--agent", "triage", "--run-id", "first", "My order 7 is broken."}, team...)...)
	if code != 0 || out != "billing: refunded.\n" {
		t.Fatalf("%d %q", code, out)
	}
	var result event.Result
	out, _ = s.outputOf("result", "first", "-o", "json")
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.HandedTo == nil || result.HandedTo.Agent != "root-1-0" || result.HandedTo.Name != "billing" {
		t.Errorf("the result does not name who has the conversation: %v %s", err, out)
	}
	if out, _ = s.outputOf("transcript", "first", "--agent", "root-1-0"); !strings.Contains(out, "My order 7 is broken.") || !strings.Contains(out, "Billing takes over.") {
		t.Errorf("billing has not read the conversation: %s", out)
	}
	for _, args := range [][]string{{"events", "first"}, {"tree", "first"}, {"describe", "first"}, append([]string{"agents", "describe", "triage"}, team...)} {
		if out, code = s.outputOf(args...); code != 0 || !strings.Contains(strings.ToLower(out), "hand") || !strings.Contains(out, "billing") {
			t.Errorf("troupe %s shows no handoff: %d %s", strings.Join(args, " "), code, out)
		}
	}
	if out, _ = s.outputOf("tree", "first"); !strings.Contains(out, "1 tool call   1 handoff ") {
		t.Errorf("the tree counts no handoff: %s", out)
	}
	if stderr, _ := s.errorOf("follow", "first"); !strings.Contains(stderr, "triage  agent.handed_off  to billing") {
		t.Errorf("who follows the run is not told: %s", stderr)
	}
	for agent, want := range map[string]string{"triage": "── billing (root-1-0) took over at 20", "billing": "── took over from triage (root) at 20"} {
		if out, _ = s.outputOf("transcript", "first", "--agent", agent); !strings.Contains(out, want) {
			t.Errorf("the transcript of %s does not say who took over: %s", agent, out)
		}
	}
	if out, code = s.outputOf("verify", "first"); code != 0 {
		t.Errorf("its logs break a rule: %d %s", code, out)
	}
	if out, code = s.outputOf("replay", "first"); code != 0 {
		t.Errorf("it does not replay: %d %s", code, out)
	}
}

// In a conversation the next message goes to the agent that has it now, in a chat and in a run of another process, unless the
// message names another agent.
//
//behaviour:shows K9
func TestAConversationIsHandedOff(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, handoffTeam)
	chat := s.command("chat", "-q", "-m", "script/play.yaml", "--agents", "team", "--agent", "triage", "--conversation", "c")
	chat.Stdin = strings.NewReader("My order is broken.\nOrder 7.\nThanks.\n")
	out, err := chat.Output()
	if want := "Which order?\nbilling: refunded.\nbilling still: Thanks.\n"; err != nil || string(out) != want {
		t.Fatalf("the chat: %v %q", err, out)
	}
	run := func(args ...string) (string, int) {
		return s.outputOf(append([]string{"run", "-q", "-m", "script/play.yaml", "--agents", "team", "--conversation", "c"}, args...)...)
	}
	if out, code := run("And the next day?"); code != 0 || !strings.HasPrefix(out, "billing") {
		t.Errorf("a run of another process: %d %q", code, out)
	}
	var shown client.ConversationInfo
	text, _ := s.outputOf("conversations", "show", "c", "-o", "json")
	if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.HandedTo != "billing" {
		t.Errorf("who has the conversation is not shown: %v %s", err, text)
	}
	if stderr, code := s.errorOf("run", "-m", "script/play.yaml", "--conversation", "c", "Without the files of the team"); code != 2 || !strings.Contains(stderr, "was handed off to billing") {
		t.Errorf("an agent that the run does not have: %d %s", code, stderr)
	}
	if out, code := run("--agent", "triage", "Another matter."); code != 0 || strings.HasPrefix(out, "billing") {
		t.Errorf("a message that names an agent: %d %q", code, out)
	}
	if text, _ = s.outputOf("conversations", "show", "c", "-o", "json"); strings.Contains(text, `"handed_to": "billing"`) && !strings.Contains(text, `root-`) {
		t.Errorf("triage has the conversation again: %s", text)
	}
}

// A handoff that the loop or the supervisor has refused does not make the run a failure: the agent hands off alone, or answers
// itself.
//
//behaviour:shows K9
func TestARefusedHandoffIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ replies, want string }{
		"beside another call": {`[{calls: [{name: handoff, args: {agent: billing, message: "Refund order 7."}}, {name: get_run_journal}]},
    {calls: [{name: handoff, args: {agent: billing, message: "Please refund order 7."}}]}]`, "billing: refunded.\n"},
		"none are allowed": {`[{calls: [{name: handoff, args: {agent: billing, message: "Refund order 7."}}]}, {text: "Refunded."}]`, "Refunded.\n"},
	} {
		files := map[string]string{"team/triage.md": handoffTeam["team/triage.md"], "team/billing.md": handoffTeam["team/billing.md"],
			"play.yaml": "agents:\n  triage: " + c.replies + "\n  billing: [{text: x}, {text: \"billing: refunded.\"}]\n"}
		s := newTestHome(t, files)
		args := []string{"run", "-q", "-m", "script/play.yaml", "--agents", "team", "--agent", "triage", "--run-id", "first"}
		if name == "none are allowed" {
			args = append(args, "--max-handoffs", "-1")
		}
		if out, code := s.outputOf(append(args, "My order 7 is broken.")...); code != 0 || out != c.want {
			t.Errorf("%s: %d %q", name, code, out)
		}
	}
}

// At a point where an agent has handed off, nobody would read the prompt of a fork; the result of a delegation is in the log of the
// supervisor, too. Both are refused with the name of the agent to fork.
//
//behaviour:shows K9
func TestAForkAtAHandoffNamesTheHolder(t *testing.T) {
	t.Parallel()
	s := newTestHome(t, map[string]string{"team/triage.md": handoffTeam["team/triage.md"], "team/billing.md": "---\nname: billing\ndescription: d\nx-troupe: {delegates: []}\n---\nx\n",
		"play.yaml": `
agents:
  triage: [{calls: [{name: handoff, args: {agent: billing, message: "Refund order 7."}}]}]
  billing: [{text: unheard}, {text: "billing: {{user}}"}, {text: "billing: {{user}}"}]
`})
	if out, code := s.outputOf("run", "-q", "-m", "script/play.yaml", "--agents", "team", "--agent", "triage", "--run-id", "first", "My order 7 is broken."); code != 0 {
		t.Fatalf("%d %s", code, out)
	}
	fork := []string{"run", "-q", "-m", "script/play.yaml", "--agents", "team", "--fork"}
	stderr, code := s.errorOf(append(fork, "first@root:1", "what if")...)
	if code != 2 || !strings.Contains(stderr, "root has handed off the conversation to root-1-0 (billing)") || !strings.Contains(stderr, "first@root-1-0:TURN") {
		t.Errorf("a prompt that nobody reads: %d %s", code, stderr)
	}
	if stderr, code = s.errorOf(append(fork, "first@root:1-0", "--instead", "no")...); code != 2 || !strings.Contains(stderr, "the result of a delegation cannot be replaced") ||
		!strings.Contains(stderr, "fork the child: first@root-1-0:TURN") {
		t.Errorf("another result of the handoff: %d %s", code, stderr)
	}
	if stderr, code = s.errorOf(append(fork, "first@root-1-0:1", "what if")...); code != 0 {
		t.Errorf("the agent that has the conversation: %d %s", code, stderr)
	}
}
