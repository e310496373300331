package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// TestALiveTreeIsForked: while children of the original run a side effect, the tree is forked, and so is the fork. The
// forks do not repeat the side effect by themselves: a person decides. All three end as they would have, and none is
// charged for what another has under way.
//
//behaviour:shows D6
func TestALiveTreeIsForked(t *testing.T) {
	t.Parallel()
	model, gate, agents := heldFamilyBy(t, "effect")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	first := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss", Yes: true})
	awaitEvents(t, c, first, event.KindToolStarted, 2)
	runs := []string{first}
	for range 2 {
		r := client.RunRequest{RunID: client.NewID(), Fork: runs[len(runs)-1] + "@root:0", Agents: agents, Model: model}
		if _, err := c.Run(testContext(t), r); err != nil {
			t.Fatal(err)
		}
		if again, err := c.Run(testContext(t), r); err != nil || !again.Existed {
			t.Errorf("the same request again: %+v %v", again, err)
		}
		runs = append(runs, r.RunID)
	}
	late := client.RunRequest{RunID: client.NewID(), Fork: first + "@root-1-0:0", Agents: agents, Model: model, MaxTokens: forkLimit, MaxToolCalls: 150}
	if _, err := c.Run(testContext(t), late); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	for _, run := range append(runs, late.RunID) {
		r := waitAnswering(t, c, run)
		if r.Reason != spec.Completed || !strings.HasPrefix(r.Text, "both: waited: open") {
			t.Errorf("%s: %s %q", run, r.Reason, r.Text)
		}
		checkExactBudget(t, run, r)
		report := verify.Run(checkWhole(t, c, run), verify.Claim{State: "finished", Reason: string(r.Reason)})
		if s := report.Sums; s.Settled.Tokens != r.Budget.Used || s.Held.Tokens != 0 || s.Limit.Tokens != r.Budget.Limit || len(report.Findings) > 0 {
			t.Errorf("%s: the logs show %+v, the result %+v: %v", run, s, r.Budget, report.Findings)
		}
		facts := strings.Join(report.Certificate.Facts, "\n")
		if named := strings.Contains(facts, fmt.Sprintf("a fork of %s, its limit is %d tokens, 150 calls (set by fork in entry", late.Fork, forkLimit)); named != (run == late.RunID) {
			t.Errorf("%s: the certificate names another limit:\n%s", run, facts)
		}
	}
}

// forkLimit is the limit in tokens of one fork of TestALiveTreeIsForked.
const forkLimit = 4_321_000

// TestAForkAsksAboutSideEffectsOfItsOriginal: a side effect that the original had begun at the point does not run again by
// itself. The answer at the point is another one in the fork.
//
//behaviour:shows D6
func TestAForkAsksAboutSideEffectsOfItsOriginal(t *testing.T) {
	t.Parallel()
	_, gate, agents := heldFamilyBy(t, "effect")
	boss := "---\nname: chief\ndescription: Delegates.\n---\nDelegate.\n"
	buyer := "---\nname: buyer\ndescription: Asks.\n---\nAsk.\n"
	for name, text := range map[string]string{"chief.md": boss, "buyer.md": buyer} {
		if err := os.WriteFile(filepath.Join(agents, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := writeScript(t, `
agents:
  chief:
    - calls: [{name: delegate, args: {agent: keeper, task: wait}}, {name: delegate, args: {agent: buyer, task: buy}}]
    - text: "{{result.0}} {{result.1}}"
  keeper: [{calls: [{name: wait}]}, {text: "waited: {{last}}"}]
  buyer: [{calls: [{name: ask_human, args: {question: "Which one?"}}]}, {text: "bought: {{last}}"}]
`)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	first := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "chief", Yes: true})
	awaitEvents(t, c, first, event.KindQueryAsked, 1)
	awaitEvents(t, c, first, event.KindToolStarted, 2) // ask_human is one, too
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: first, Agent: "root-1-1", Query: "1-0.1", Decision: spec.TextOnly, Text: "the red one"}); err != nil {
		t.Fatal(err)
	}
	openGate(t, gate)
	if r := waitFinished(t, c, first, spec.Completed).Result; !strings.Contains(r.Text, "the red one") {
		t.Fatal(r.Text)
	}
	fork := client.NewID()
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: fork, Fork: first + "@root-1-1:1-0.1", Instead: "the blue one", Agents: agents, Model: model}); err != nil {
		t.Fatal(err)
	}
	awaitEvents(t, c, fork, event.KindCheckpointResumeUnsafe, 1)
	info, err := c.Wait(testContext(t), fork)
	if err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	r := waitAnswering(t, c, fork)
	if r.Reason != spec.Completed || !strings.Contains(r.Text, "the blue one") || strings.Contains(r.Text, "the red one") || !strings.Contains(r.Text, "open") {
		t.Errorf("%s %q", r.Reason, r.Text)
	}
	checkExactBudget(t, fork, r)
	checkWhole(t, c, fork)
}

// TestHostileForksAreRefused: what a fork may not have is refused with a remedy, and leaves no run behind.
//
//behaviour:shows D6
func TestHostileForksAreRefused(t *testing.T) {
	t.Parallel()
	place, agents := t.TempDir(), writersAgents(t)
	dir, other, linked := filepath.Join(place, "work"), filepath.Join(place, "copy"), filepath.Join(place, "link")
	for _, d := range []string{filepath.Join(dir, "below"), other} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, linked); err != nil {
		t.Fatal(err)
	}
	script := writeScript(t, writers(1, 1))
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{place, agents} })
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "boss", Dir: dir, Yes: true})
	waitFinished(t, c, run, spec.Completed)
	id := client.NewID()
	for want, r := range map[string]client.RunRequest{
		"there is no run":                     {Fork: client.NewID() + "@root:1", Dir: other},
		"there is no agent":                   {Fork: run + "@root-7-7:1", Dir: other},
		"no complete turn 99":                 {Fork: run + "@root:99", Dir: other},
		"is neither a turn nor a call":        {Fork: run + "@root:-3", Dir: other},
		`"01" is neither a turn`:              {Fork: run + "@root:01", Dir: other},
		`"-0" is neither a turn`:              {Fork: run + "@root:-0", Dir: other},
		"is only valid with a fork of a tree": {Fork: run + "@1", Dir: other, Instead: "x"},
		"is almost the decision deny":         {Fork: run + "@root:1", Dir: other, Instead: "DENY"},
		"no result of a call":                 {Fork: run + "@root:9-9", Dir: other},
		"shares no directory":                 {Fork: run + "@root:1"},
		"both would write there":              {Fork: run + "@root:1", Dir: dir},
		"dir is " + linked:                    {Fork: run + "@root:1", Dir: linked},
		"dir is " + filepath.Join(dir, "b"):   {Fork: run + "@root:1", Dir: filepath.Join(dir, "below")},
		"dir is " + place + ",":               {Fork: run + "@root:1", Dir: place},
		"a fork of a tree takes max_turns":    {Fork: run + "@root:1", Dir: other, MaxTurns: 3},
		"a fork of a tree takes yes":          {Fork: run + "@root:1", Dir: other, Yes: true},
		"a limit is negative":                 {Fork: run + "@root:1", Dir: other, MaxTokens: -1},
		"there is nothing to change":          {Fork: run + "@root:1", Dir: other, Instead: "x"},
		"a run cannot be a fork of itself":    {Fork: id + "@root:1", Dir: other},
		"policy":                              {Fork: run + "@root:1", Dir: other, Policy: &supervisor.Policy{Rules: []supervisor.Rule{{}}}},
		"more than 65536 bytes":               {Fork: run + "@root:1", Dir: other, Prompt: strings.Repeat("x", 70_000)},
		"may not use":                         {Fork: run + "@root:1", Dir: t.TempDir()},
	} {
		r.RunID, r.Agents, r.Model = id, agents, script
		_, err := c.Run(testContext(t), r)
		if want == "may not use" {
			want = ""
		}
		if err == nil || codeOf(err) == "" || codeOf(err) == client.CodeInternal || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if list, err := c.List(testContext(t)); err != nil || len(list) != 1 {
			t.Fatalf("%s: %+v %v", want, list, err)
		}
	}
	// The id of a fork is that of one fork: a client that names another point is not told of the first.
	fork := client.RunRequest{RunID: client.NewID(), Fork: run + "@root:1", Dir: other, Agents: agents, Model: script, Caller: "ours"}
	if _, err := c.Run(testContext(t), fork); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Describe(testContext(t), fork.RunID); err != nil || info.Description.Caller != "ours" {
		t.Errorf("%+v, %v", info.Description, err)
	}
	fork.Fork = run + "@root:0"
	if _, err := c.Run(testContext(t), fork); codeOf(err) != client.CodeConflict || !strings.Contains(err.Error(), "is not a fork of "+fork.Fork) {
		t.Error(err)
	}
	if _, err := c.Run(testContext(t), client.RunRequest{RunID: id, Fork: run + "@root:1", Dir: other, Model: script}); err == nil || !strings.Contains(err.Error(), "boss") {
		t.Errorf("without its agent files: %v", err)
	}
}

// TestDamagedLogIsNotForked: a run of which one entry says something else than its hashes is not forked.
//
//behaviour:shows D6
func TestDamagedLogIsNotForked(t *testing.T) {
	t.Parallel()
	agents := writeAskerAgent(t)
	f := parkedFiles(t, agents, 1)[0]
	changed := 0
	for i, m := range f.Entries {
		if e, err := mailbox.Decode(m.Data); m.To.Agent() == "root" && err == nil && e.From == m.To && e.Items[0].Kind == "replied" {
			f.Entries[i].Data = []byte(strings.Replace(string(m.Data), "ask_human", "ask_hvman", 1))
			changed++
		}
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	if err := h.post.Import(testContext(t), nil, f.Entries); err != nil || changed == 0 {
		t.Fatal(err, changed)
	}
	super := logsOf(f.Entries, mailbox.Super)
	if _, err := mailbox.Put(testContext(t), h.post, super[0].To, super[0].Data); err != nil {
		t.Fatal(err)
	}
	for _, point := range []string{"@root:0", "@root:1", "@root:1-0.1"} {
		_, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Fork: f.Header.Run + point, Agents: agents})
		if codeOf(err) == "" || codeOf(err) == client.CodeInternal {
			t.Errorf("%s: %v", point, err)
		}
	}
}
