package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// writeWordyAgent is an agent with a command whose output is clipped.
func writeWordyAgent(t *testing.T) (model, agents string) {
	t.Helper()
	agents = t.TempDir()
	text := `---
name: wordy
description: Prints much.
x-troupe:
  tools:
    - name: dump
      description: Prints much.
      command: seq 1 40000
      effect: read
---
Dump.
`
	if err := os.WriteFile(filepath.Join(agents, "wordy.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return writeScript(t, `
agents:
  wordy:
    - calls: [{name: dump}]
    - text: "seen"
`), agents
}

//behaviour:shows C7
func TestNodeKeepsWholeResults(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, agents := writeWordyAgent(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c, tp := connectClient(t, h), recordEvents(t, h)
	run := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "wordy"})
	waitFinished(t, c, run, spec.Completed)
	s, err := runlog.ReplayAgent(testContext(t), h.post, mailbox.At(run, "root"))
	if err != nil {
		t.Fatal(err)
	}
	result := s.History[2].Results[0].Text
	_, ref, ok := strings.Cut(result, "read_result reads any part of it, ref ")
	if !ok {
		t.Fatalf("the result names no reference: %.200s…%s", result, result[len(result)-200:])
	}
	part, size, err := h.blobs.Get(testContext(t), run, strings.TrimSuffix(ref, "]"), 0, 8)
	if err != nil || string(part) != "1\n2\n3\n4\n" || size < 200_000 {
		t.Errorf("%q of %d bytes: %v", part, size, err)
	}
	_, raw := pagedEvents(t, c, run)
	sameEvents(t, tp.waitForEvents(t, run, raw), raw)
	told := false
	for _, e := range raw {
		told = told || strings.Contains(e, `"kind":"tool.finished"`) && strings.Contains(e, `"size":`+fmt.Sprint(size)) && strings.Contains(e, `"ref":"`)
	}
	if !told {
		t.Error("no event names the kept result")
	}
}

// exportTranscript reads and checks the history of a root.
func exportTranscript(t *testing.T, c *client.Client, run string, turn *int) history.Transcript {
	t.Helper()
	doc, err := c.Export(testContext(t), run, "", turn)
	if err != nil {
		t.Fatal(err)
	}
	var p history.Transcript
	if err := json.Unmarshal(doc, &p); err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// transcriptTexts are what was said, without the ids of calls.
func transcriptTexts(p history.Transcript) []string {
	var list []string
	for _, m := range p.Messages {
		line := string(m.Role) + " " + m.Text
		for _, c := range m.Calls {
			line += " " + c.Name + c.Args
		}
		for _, r := range m.Results {
			line += " " + r.Text
		}
		list = append(list, line)
	}
	return list
}

const again = `default: [{text: "1"}, {text: "2"}, {text: "3 {{user}}"}, {text: "4 {{user}}"}, {text: "5 {{user}}"}]`

// A history that is larger than a message and has a turn larger than an entry
// is exported in pages, imported in parts, and forked: it is the same one.
//
//behaviour:shows D6
func TestLargeHistoryIsImportedWhole(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	_, agents := writeWordyAgent(t)
	model := writeScript(t, "agents:\n  wordy:\n    - calls: ["+strings.Repeat("{name: dump}, ", 7)+"]\n    - text: seen\n")
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	first := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "wordy", MaxTokens: 10_000_000})
	waitFinished(t, c, first, spec.Completed)
	past := exportTranscript(t, c, first, nil)
	size := 0
	for _, line := range transcriptTexts(past) {
		size += len(line)
	}
	if size < 7*60<<10 || past.Turn != 2 || past.Run != first {
		t.Fatalf("%d bytes after turn %d of %s", size, past.Turn, past.Run)
	}
	imported, forked := client.NewID(), client.NewID()
	recalled, err := c.Recall(testContext(t), imported, past)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Recall(testContext(t), imported, past); err != nil || again != recalled {
		t.Fatalf("sent again: %+v %v, before %+v", again, err, recalled)
	}
	next := writeScript(t, again)
	for id, r := range map[string]client.RunRequest{imported: {History: &recalled}, forked: {Fork: first}} {
		r.RunID, r.Model, r.Prompt, r.MaxTokens = id, next, "go on", 10_000_000
		beginRun(t, c, r)
		beginRun(t, c, r) // it is the same run
		info := waitFinished(t, c, id, spec.Completed)
		if info.Result.Text != "3 go on" {
			t.Errorf("%s: %q", id, info.Result.Text)
		}
		got, want := transcriptTexts(exportTranscript(t, c, id, nil)), transcriptTexts(past)
		if len(got) != len(want)+2 || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: %d messages, then %d", id, len(want), len(got))
		}
	}
}

// A live run is forked in its current state, and continues on its own: its fork learns what
// the run had not read yet.
//
//behaviour:shows D6
func TestALiveRunIsForked(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	model, gate, agents := heldFamily(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c, tp := connectClient(t, h), recordEvents(t, h)
	first := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, first, event.KindToolStarted, 2)
	next := writeScript(t, again)
	fork := beginRun(t, c, client.RunRequest{Model: next, Fork: first, Prompt: "meanwhile?"})
	info := waitFinished(t, c, fork, spec.Completed)
	if info.Result.Text != "2" {
		t.Errorf("the fork: %+v", info.Result)
	}
	got := transcriptTexts(exportTranscript(t, c, fork, nil))
	if len(got) != 5 || !strings.Contains(got[2], "no result yet: the call was under way when this history was taken") {
		t.Errorf("the fork was told %q", got)
	}
	early := beginRun(t, c, client.RunRequest{Model: next, Fork: first + "@0", Prompt: "from the start"})
	waitFinished(t, c, early, spec.Completed)
	if got := transcriptTexts(exportTranscript(t, c, early, nil)); len(got) != 3 || got[1] != "user from the start" {
		t.Errorf("from turn 0: %q", got)
	}
	_, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "x", Model: next, Fork: first + "@1"})
	if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Code != client.CodeBad || !strings.Contains(refused.Hint, "its complete turns are 0 to 0") {
		t.Errorf("a turn under way: %v", err)
	}
	openGate(t, gate)
	waitFinished(t, c, first, spec.Completed)
	for _, run := range []string{first, fork} {
		_, raw := pagedEvents(t, c, run)
		sameEvents(t, tp.waitForEvents(t, run, raw), raw)
	}
}

// A file that is not a history, or comes at the wrong time, is refused with a remedy, and
// leaves nothing running.
//
//behaviour:shows D6
func TestHostileHistoriesAreRefused(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	nc := connectRole(t, h, bus.RoleClient)
	next := writeScript(t, again)
	known := beginRun(t, c, client.RunRequest{Model: next})
	waitFinished(t, c, known, spec.Completed)
	user := []model.Message{{Role: model.User, Text: "a"}}
	for want, r := range map[string]client.RecallRequest{
		"run_id: names: not a token": {RunID: "A.*", Past: "p", Messages: user},
		"past: names: not a token":   {RunID: "r1", Past: "a.>", Messages: user},
		"part is -1":                 {RunID: "r1", Past: "p", Part: -1, Messages: user},
		"part is 512":                {RunID: "r1", Past: "p", Part: history.PartsMax, Messages: user},
		"exists already":             {RunID: known, Past: "p", Messages: user},
		"entry too large":            {RunID: "r1", Past: "p", Messages: []model.Message{{Role: model.User, Text: strings.Repeat("x", 300<<10)}}},
		"too many elements":          {RunID: "r1", Past: "p", Messages: slices.Repeat(user, 1000)},
	} {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := nc.Request("troupe.cmd.recall", raw, patience)
		if err != nil || !strings.Contains(string(reply.Data), want) || reply.Header.Get(client.HintHeader) == "" {
			t.Errorf("want %q: %v %s", want, err, reply.Data)
		}
	}
	refused := func(want string, r client.RunRequest) {
		t.Helper()
		r.Model, r.Prompt = next, "x"
		_, err := c.Run(testContext(t), r)
		if known := (*client.Error)(nil); !errors.As(err, &known) || !strings.Contains(known.Text, want) || known.Hint == "" {
			t.Errorf("want %q: %v", want, err)
		}
		if _, ok := findRow(t, c, r.RunID); ok {
			t.Errorf("%s: there is a run", want)
		}
	}
	refused("the request names 0 parts", client.RunRequest{RunID: "r2", History: &client.History{Past: "p"}})
	refused("the request names 3 parts of the history \"p\", and 0", client.RunRequest{RunID: "r2", History: &client.History{Past: "p", Parts: 3}})
	refused("both fork and history", client.RunRequest{RunID: "r2", Fork: known, History: &client.History{}})
	refused("a fork of itself", client.RunRequest{RunID: "r2", Fork: "r2"})
	refused(`there is no run "r3"`, client.RunRequest{RunID: "r2", Fork: "r3"})
	refused(`fork is "*.>"`, client.RunRequest{RunID: "r2", Fork: "*.>"})
	refused(`fork is "`+known+`@-1"`, client.RunRequest{RunID: "r2", Fork: known + "@-1"})

	// Each part is accepted separately; the whole is checked at the end.
	past, err := c.Recall(testContext(t), "r4", history.Transcript{Messages: []model.Message{{Role: model.Assistant, Text: "I begin"}}})
	if err != nil {
		t.Fatal(err)
	}
	refused("the history: message 0: an assistant's message follows neither", client.RunRequest{RunID: "r4", History: &past})
	good, err := c.Recall(testContext(t), "r4", history.Transcript{Messages: user})
	if err != nil {
		t.Fatal(err)
	}
	refused("and 1 parts of", client.RunRequest{RunID: "r4", History: &past})
	beginRun(t, c, client.RunRequest{RunID: "r4", Model: next, History: &good, Prompt: "go"})
	waitFinished(t, c, "r4", spec.Completed)
}

// The pages of an export are of one document, however far the log has grown
// since the first: each names the entry that it was taken at.
func TestExportPagesShareOneSnapshot(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	h := startNode(t, t.TempDir())
	c := connectClient(t, h)
	nc := connectRole(t, h, bus.RoleClient)
	run := beginRun(t, c, client.RunRequest{Model: writeScript(t, again)})
	waitFinished(t, c, run, spec.Completed)
	page := func(n uint64) (p client.ExportPage) {
		raw, err := json.Marshal(client.ExportRequest{RunID: run, N: n})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := nc.Request("troupe.cmd.export", raw, patience)
		if err != nil || json.Unmarshal(reply.Data, &p) != nil {
			t.Fatalf("%v: %s", err, reply.Data)
		}
		return p
	}
	whole := page(0)
	last := page(whole.N)
	if last.N != whole.N || last.Data != whole.Data || whole.N < 4 {
		t.Errorf("taken at entry %d, and then at %d", whole.N, last.N)
	}
	before := int64(0)
	for n := uint64(2); n <= whole.N; n++ {
		p := page(n)
		if p.N != n || p.Size < before {
			t.Errorf("asked for entry %d: %d, %d bytes after %d", n, p.N, p.Size, before)
		}
		before = p.Size
	}
}

// A fork begins with messages alone. A note lists what it does not copy.
func TestForkNotesWhatItLeavesBehind(t *testing.T) {
	t.Parallel()
	dir := newRepository(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	c := connectClient(t, h)
	first := beginRun(t, c, client.RunRequest{Model: writeScript(t, again), Dir: dir})
	waitFinished(t, c, first, spec.Completed)
	told, err := c.Run(testContext(t), client.RunRequest{RunID: client.NewID(), Prompt: "once more", Model: "builtin/scout", Fork: first})
	notes := strings.Join(told.Notes, "\n")
	if err != nil || !strings.Contains(notes, "worked in "+dir) || !strings.Contains(notes, "this run asks builtin/scout") {
		t.Errorf("%v\n%s", err, notes)
	}
}
