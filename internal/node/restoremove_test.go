package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// waitingWriter dumps a run that works in a directory, and waits for an approval of a write. Its node is gone.
func waitingWriter(t *testing.T, agents, dir string) (f runfile.File, script string) {
	t.Helper()
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, agents} })
	c := connectClient(t, h)
	script = writeScript(t, writers(2, 2))
	run := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "boss", Dir: dir})
	awaitEvents(t, c, run, event.KindQueryAsked, 2)
	if info, err := c.Wait(testContext(t), run); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	f = dumpRun(t, c, run)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return f, script
}

// poolsIn are the node pools of the agents that a file names.
func poolsIn(f runfile.File) map[string]string {
	pools := map[string]string{}
	for _, m := range f.Entries {
		pools[m.To.Agent()] = m.To.Pool()
	}
	return pools
}

// TestRestoreInTheNodePoolOfAnotherMachine: a run with a directory moves from a node with its own logs to a shared server, into a copy of its
// directory and into the node pool of that machine; from there to another machine of the server; and from there to a node with its own
// logs. Each time the file was dumped while it waited, and at the end its files are in the last directory alone.
//
//behaviour:shows F5
func TestRestoreInTheNodePoolOfAnotherMachine(t *testing.T) {
	t.Parallel()
	agents := writersAgents(t)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	f, script := waitingWriter(t, agents, dirs[0])
	run := f.Header.Run
	named := func(dir string) client.RestoreRequest {
		return client.RestoreRequest{OriginalStopped: true, AcceptApprovals: true, Named: client.RunRequest{Agents: agents, Dir: dir, Model: script}}
	}
	for i, machine := range []string{"one", "two"} {
		e := startSharedServer(t)
		h := joinAs(t, e, machine, func(c *Config) { c.Roots = []string{dirs[i+1], agents} })
		pool := names.MachinePool(machine)
		holdsAll(t, "default", h)
		holdsAll(t, pool, h)
		c := connectClient(t, h)
		r := named("")
		if _, err := sendRestore(t, c, f, r); err == nil {
			t.Fatalf("a run moves to %s although its request does not say so", machine)
		}
		if _, err := sendRestore(t, c, f, named(dirs[0])); codeOf(err) == "" || codeOf(err) == client.CodeInternal {
			t.Errorf("the first directory is no root here: %v", err)
		}
		r = named(dirs[i+1])
		if i == 0 { // the next question waits for the last node
			r.Answers = []client.AnswerRequest{{Query: "1-0.0", Agent: "root-1-0", Decision: spec.Approve}}
		}
		if done, err := sendRestore(t, c, f, r); err != nil || done.Logs != 4 {
			t.Fatalf("%+v %v", done, err)
		}
		awaitEvents(t, c, run, event.KindQueryAsked, 3)
		if info, err := c.Wait(testContext(t), run); err != nil || info.State != client.RunParked {
			t.Fatalf("%+v %v", info, err)
		}
		checkWhole(t, c, run)
		f = dumpRun(t, c, run)
		for agent, in := range poolsIn(f) {
			if want := map[bool]string{true: "", false: pool}[agent == mailbox.Super]; in != want {
				t.Errorf("%s lives in the pool %q, want %q", agent, in, want)
			}
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dirs[3], agents} })
	c := connectClient(t, h)
	if _, err := sendRestore(t, c, f, named(dirs[3])); err != nil {
		t.Fatal(err)
	}
	if r := waitAnswering(t, c, run); r.Reason != spec.Completed || !strings.Contains(r.Text, "all wrote") {
		t.Errorf("%+v", r)
	}
	for _, m := range checkWhole(t, c, run) {
		if m.To.Pool() != "" {
			t.Errorf("an entry of %s", m.To)
		}
	}
	for i, dir := range dirs {
		for _, name := range []string{"0.txt", "1.txt"} {
			_, err := os.Stat(filepath.Join(dir, name))
			if want := i == 3 || i == 1 && name == "0.txt"; (err == nil) != want {
				t.Errorf("%s of directory %d is there: %v", name, i, err == nil)
			}
		}
	}
}

// TestAttackRestoreIntoAnotherDirectory: a file whose task was changed cannot be moved, so no move hides the change; and a run moves only
// into a directory that a new run may have.
//
//behaviour:shows F5
func TestAttackRestoreIntoAnotherDirectory(t *testing.T) {
	t.Parallel()
	agents, dir, to := writersAgents(t), t.TempDir(), t.TempDir()
	f, script := waitingWriter(t, agents, dir)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{to, agents} })
	c := connectClient(t, h)
	r := client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents, Dir: to, Model: script}}
	changed := runfile.File{Header: f.Header}
	for _, m := range f.Entries {
		if m.To.Agent() == "root-1-0" {
			m.Data = []byte(strings.Replace(string(m.Data), "write", "wrote", 1))
		}
		changed.Entries = append(changed.Entries, m)
	}
	if _, err := sendRestore(t, c, changed, r); codeOf(err) != client.CodeBad {
		t.Errorf("a changed task was moved: %v", err)
	}
	link := filepath.Join(to, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{dir, link, t.TempDir(), filepath.Join(to, "missing"), "/"} {
		r.Named.Dir = place
		if _, err := sendRestore(t, c, f, r); codeOf(err) == "" || codeOf(err) == client.CodeInternal {
			t.Errorf("it was moved to %s: %v", place, err)
		}
	}
	if logs, err := h.post.Addresses(testContext(t), f.Header.Run); err != nil || len(logs) != 0 {
		t.Errorf("what was refused has left %v, %v", logs, err)
	}
	r.Named.Dir = to
	if _, err := sendRestore(t, c, f, r); err != nil {
		t.Error(err)
	}
}

// TestARunOfAConversationIsRestoredOutOfIt: it goes on with what the conversation gave it, and is in nobody's way: a conversation of that name
// here has its own runs. One that waits for its turn is not restored, and one that is over stays in it.
//
//behaviour:shows F5
func TestARunOfAConversationIsRestoredOutOfIt(t *testing.T) {
	t.Parallel()
	agents, script := writeAskerAgent(t), writeScript(t, asker)
	talk := client.RunRequest{Model: script, Agents: agents, Agent: "asker", Conversation: "talk"}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	waits := beginRun(t, c, talk)
	if info, err := c.Wait(testContext(t), waits); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	queued := beginRun(t, c, talk)
	waitFile, queuedFile := dumpRun(t, c, waits), dumpRun(t, c, queued)
	if err := c.Answer(testContext(t), client.AnswerRequest{RunID: waits, Query: "1-0.1", Decision: spec.TextOnly, Text: "the blue one"}); err != nil {
		t.Fatal(err)
	}
	waitFinished(t, c, waits, spec.Completed)
	overFile := dumpRun(t, c, waits)

	h = startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c = connectClient(t, h)
	here := beginRun(t, c, talk)
	if info, err := c.Wait(testContext(t), here); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	r := client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents}, Answers: []client.AnswerRequest{{Query: "1-0.1", Decision: spec.TextOnly, Text: "the red one"}}}
	done, err := sendRestore(t, c, waitFile, r)
	if err != nil || len(done.Notes) != 1 || !strings.Contains(done.Notes[0], "goes on without it") {
		t.Fatalf("%+v %v", done, err)
	}
	info := waitFinished(t, c, waits, spec.Completed)
	if !strings.Contains(info.Result.Text, "the red one") || info.Result.Conversation != "" {
		t.Errorf("%+v", info.Result)
	}
	checkWhole(t, c, waits)
	if again, err := sendRestore(t, c, waitFile, r); err != nil || !again.Existed {
		t.Errorf("the same restore again: %+v %v", again, err)
	}
	if info, err := c.Get(testContext(t), here); err != nil || info.State != client.RunParked {
		t.Errorf("the conversation here: %+v %v", info, err)
	}
	if _, err := sendRestore(t, c, queuedFile, r); codeOf(err) != client.CodeBad || !strings.Contains(err.Error(), "has not begun") {
		t.Errorf("a queued run: %v", err)
	}

	h = startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c = connectClient(t, h)
	if done, err := sendRestore(t, c, overFile, client.RestoreRequest{Named: r.Named}); err != nil || len(done.Notes) > 0 {
		t.Fatalf("%+v %v", done, err)
	}
	if info := waitFinished(t, c, waits, spec.Completed); info.Result.Conversation != "talk" {
		t.Errorf("%+v", info.Result)
	}
}

// TestAnAgentAtWorkIsRestoredAlone: one of two children is dumped while both work, and goes on as the root of a run of its own, on another
// node. Its budget is that of the whole run less what was used; the sibling is not in it.
//
//behaviour:shows F5
func TestAnAgentAtWorkIsRestoredAlone(t *testing.T) {
	t.Parallel()
	family, gate, agents := heldFamily(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: family, Agents: agents, Agent: "boss", MaxTokens: 900_000})
	awaitEvents(t, c, run, event.KindToolStarted, 2)
	f := dumpRun(t, c, run)
	f.Header.Run = client.NewID()
	entries, err := runfile.TakeAgent(f.Entries, "root-1-1", f.Header.Run, f.Entries[0].At)
	if err != nil {
		t.Fatal(err)
	}
	f.Entries = entries
	to := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c = connectClient(t, to)
	done, err := sendRestore(t, c, f, client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents, Model: family}})
	if err != nil || done.Logs != 2 || done.State != client.RunLive {
		t.Fatalf("%+v %v", done, err)
	}
	openGate(t, gate)
	r := *waitFinished(t, c, f.Header.Run, spec.Completed).Result
	if !strings.HasPrefix(r.Text, "waited: open") || len(r.Agents) != 1 || r.Budget.Limit != 900_000 || r.Budget.Used <= r.Agents[0].Tokens || r.Budget.Reserved != 0 {
		t.Errorf("%+v", r)
	}
	checkWhole(t, c, f.Header.Run)
}
