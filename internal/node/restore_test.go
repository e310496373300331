package node

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cluster/shard"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// dumpRun reads a run at a consistent cut, as the command dump does.
func dumpRun(t *testing.T, c *client.Client, run string) runfile.File {
	t.Helper()
	first, err := c.Logs(testContext(t), run)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Logs(testContext(t), run)
	if err != nil {
		t.Fatal(err)
	}
	return runfile.File{Header: runfile.Header{Run: run, Dump: true, WrittenBy: control.Version()}, Entries: runfile.Cut(first, again)}
}

// sendRestore restores a run from a file.
func sendRestore(t *testing.T, c *client.Client, f runfile.File, r client.RestoreRequest) (client.Restored, error) {
	t.Helper()
	var data bytes.Buffer
	if err := runfile.Write(&data, f); err != nil {
		t.Fatal(err)
	}
	r.RunID = f.Header.Run
	return client.Restore(testContext(t), c, data.Bytes(), r)
}

// TestRestoreOnACluster: two runs of a node with its own logs are dumped while children work and while one waits for a
// person. On a server with several nodes, which share the actors, both end as they would have.
//
//behaviour:shows F5
func TestRestoreOnACluster(t *testing.T) {
	t.Parallel()
	family, gate, agents := heldFamily(t)
	askers, asks := writeAskerAgent(t), writeScript(t, asker)
	alone := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents, askers} })
	c := connectClient(t, alone)
	works := beginRun(t, c, client.RunRequest{Model: family, Agents: agents, Agent: "boss"})
	awaitEvents(t, c, works, event.KindToolStarted, 2)
	waits := beginRun(t, c, client.RunRequest{Model: asks, Agents: askers, Agent: "asker"})
	if info, err := c.Wait(testContext(t), waits); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	workFile, waitFile := dumpRun(t, c, works), dumpRun(t, c, waits)
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}

	e := startSharedServer(t)
	hosts := []*Node{startSharedNode(t, e, "one", shard.TTLDefault, agents, askers), startSharedNode(t, e, "two", shard.TTLDefault, agents, askers)}
	waitForSpread(t, hosts...)
	c = connectClient(t, hosts[0])
	done, err := sendRestore(t, c, workFile, client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents}})
	if err != nil || done.Entries != len(workFile.Entries) || done.Logs != 4 || done.State != client.RunLive {
		t.Fatalf("%+v %v", done, err)
	}
	openGate(t, gate)
	if info := waitFinished(t, c, works, spec.Completed); !strings.HasPrefix(info.Result.Text, "both: waited: open") {
		t.Errorf("result: %+v", info.Result)
	}
	answer := client.AnswerRequest{Query: "1-0.1", Decision: "text", Text: "the red one", By: "ann"}
	r := client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: askers}, Answers: []client.AnswerRequest{answer}}
	if done, err = sendRestore(t, c, waitFile, r); err != nil || done.State != client.RunParked {
		t.Fatalf("%+v %v", done, err)
	}
	if info := waitFinished(t, c, waits, spec.Completed); !strings.HasPrefix(info.Result.Text, "bought: a person answered: the red one") {
		t.Errorf("result: %+v", info.Result)
	}
	if done, err = sendRestore(t, c, waitFile, r); err != nil || !done.Existed {
		t.Errorf("the same restore again: %+v %v", done, err)
	}
	entries, err := c.Logs(testContext(t), works)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range workFile.Entries[:1] {
		if entries[i].At != m.At || !bytes.Equal(entries[i].Data, m.Data) {
			t.Errorf("entry %d was stamped %d, here %d", i, m.At, entries[i].At)
		}
	}
}

// TestBrokenOffRestore: what a restore has written before it was broken off is no run: it is not listed, nobody takes it
// up, and nobody opens a run of its id. The restore goes on; one of another file is refused; a delete removes it.
//
//behaviour:shows F5
func TestBrokenOffRestore(t *testing.T) {
	t.Parallel()
	agents := writeAskerAgent(t)
	files := parkedFiles(t, agents, 2)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	r := client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents}}
	for _, f := range files {
		run := f.Header.Run
		if err := h.post.Import(testContext(t), nil, f.Entries[len(f.Entries)-3:]); err != nil { // of the supervisor's log
			t.Fatal(err)
		}
		if open, err := h.UnfinishedRuns(testContext(t)); err != nil || len(open) != 0 {
			t.Errorf("half a restore is taken up: %+v %v", open, err)
		}
		if list, err := c.List(testContext(t)); err != nil || len(list) != 0 {
			t.Errorf("half a restore is listed: %+v %v", list, err)
		}
		if _, err := c.Run(testContext(t), client.RunRequest{RunID: run, Prompt: "go"}); codeOf(err) != client.CodeConflict {
			t.Errorf("a run is opened in half a restore: %v", err)
		}
		if _, err := sendRestore(t, c, f, r); codeOf(err) != client.CodeConflict {
			t.Errorf("entries of another beginning were taken: %v", err)
		}
		if _, err := c.Delete(testContext(t), run); err != nil {
			t.Errorf("half a restore is not deleted: %v", err)
		}
		if _, err := sendRestore(t, c, f, r); codeOf(err) != client.CodeConflict || !strings.Contains(err.Error(), "was deleted here") {
			t.Errorf("a deleted run was restored: %v", err)
		}
	}
}

// TestRestoreGoesOn: a restore that was broken off in a log continues behind its last entry.
//
//behaviour:shows F5
func TestRestoreGoesOn(t *testing.T) {
	t.Parallel()
	agents := writeAskerAgent(t)
	files := parkedFiles(t, agents, 1)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	f := files[0]
	var first []mailbox.Message
	seen := map[mailbox.Address]int{}
	for _, m := range f.Entries {
		if seen[m.To]++; seen[m.To] <= 2 {
			first = append(first, m)
		}
	}
	if err := h.post.Import(testContext(t), nil, first); err != nil {
		t.Fatal(err)
	}
	r := client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents}, Answers: []client.AnswerRequest{{Query: "1-0.1", Decision: "text", Text: "A"}}}
	if done, err := sendRestore(t, c, f, r); err != nil || done.Existed {
		t.Fatalf("%+v %v", done, err)
	}
	waitFinished(t, c, f.Header.Run, spec.Completed)
	ended := dumpRun(t, c, f.Header.Run)
	other := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c = connectClient(t, other)
	if done, err := sendRestore(t, c, ended, client.RestoreRequest{Named: client.RunRequest{Agents: agents}}); err != nil || done.State != client.RunFinished {
		t.Fatalf("a finished run: %+v %v", done, err)
	}
	if info := waitFinished(t, c, f.Header.Run, spec.Completed); !strings.HasPrefix(info.Result.Text, "bought: a person answered: A") {
		t.Errorf("%+v", info.Result)
	}
}

// parkedFiles dumps runs that wait for a person. Their node is gone.
func parkedFiles(t *testing.T, agents string, n int) (files []runfile.File) {
	t.Helper()
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	script := writeScript(t, asker)
	for range n {
		run := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "asker"})
		if info, err := c.Wait(testContext(t), run); err != nil || info.State != client.RunParked {
			t.Fatalf("%+v %v", info, err)
		}
		files = append(files, dumpRun(t, c, run))
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return files
}

func codeOf(err error) string {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// TestAttackRestoredFiles: whoever writes a run file gets nothing from it that a new run would not get, and no state
// that the run did not have. What is refused leaves nothing behind.
//
//behaviour:shows F5
func TestAttackRestoredFiles(t *testing.T) {
	t.Parallel()
	agents := writeAskerAgent(t)
	files := parkedFiles(t, agents, 1)
	f := files[0]
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	good := client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents}}
	for _, a := range forgeries(t) {
		changed := runfile.File{Header: f.Header, Entries: append([]mailbox.Message(nil), f.Entries...)}
		a.change(&changed)
		_, err := sendRestore(t, c, changed, good)
		told := strings.Split(a.told, "|")
		if err == nil || !strings.Contains(err.Error(), told[0]) && (len(told) == 1 || !strings.Contains(err.Error(), told[1]) && !strings.Contains(err.Error(), told[2])) {
			t.Errorf("%s: %v, want %q", a.name, err, a.told)
		}
	}
	if _, err := sendRestore(t, c, f, client.RestoreRequest{Named: good.Named}); codeOf(err) != client.CodeConflict {
		t.Errorf("a run whose original may work is restored: %v", err)
	}
	if _, err := sendRestore(t, c, f, client.RestoreRequest{OriginalStopped: true}); err == nil {
		t.Error("a run is restored with agents that nobody has named")
	}
	for _, bad := range []client.AnswerRequest{{Query: "9-9.9", Decision: "approve"}, {Query: "1-0.1", Decision: "maybe"}, {Query: "1-0.1", Decision: "approve", Always: "run"}} {
		r := good
		r.Answers = []client.AnswerRequest{bad}
		if _, err := sendRestore(t, c, f, r); codeOf(err) != client.CodeBad && codeOf(err) != client.CodeNotFound {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if logs, err := h.post.Addresses(testContext(t), f.Header.Run); err != nil || len(logs) != 0 {
		t.Errorf("what was refused has left %v, %v", logs, err)
	}
	if _, err := sendRestore(t, c, f, good); err != nil {
		t.Errorf("the file as it was: %v", err)
	}
}

// forgery is a change of a run file that a node must not restore, and what the node says about it.
type forgery struct {
	name, told string
	change     func(*runfile.File)
}

func forgeries(t *testing.T) []forgery {
	opened := func(change func(*supervisor.Opened)) func(*runfile.File) {
		return func(f *runfile.File) { changeOpened(t, f, change) }
	}
	return []forgery{
		{"a hook", "hooks are not those", opened(func(o *supervisor.Opened) {
			o.LoopOptions.Hooks = []spec.Hook{{Name: "h", Point: spec.HookContext, Command: "touch /tmp/x"}}
		})},
		{"a hook of an agent", "the hooks of its agent", opened(func(o *supervisor.Opened) {
			o.Definitions[0].LoopOptions.Hooks = []spec.Hook{{Name: "h", Point: spec.HookContext, Command: "touch /tmp/x"}}
		})},
		{"a hook with the name of a guardrail", "hooks are not those", opened(func(o *supervisor.Opened) {
			o.LoopOptions.Hooks = []spec.Hook{{Name: "guardrail:size", Point: spec.HookPreTool, Rules: "?", Failing: spec.HookAllow}}
		})},
		{"a command", "no agent file defines", opened(func(o *supervisor.Opened) { o.Commands = []spec.Command{{Name: "x", Line: "touch /tmp/x"}} })},
		{"a server", "MCP server", opened(func(o *supervisor.Opened) { o.Servers = []spec.Server{{Name: "x", Source: "/tmp/x", Own: true}} })},
		{"a rule", "a rule that allows", opened(func(o *supervisor.Opened) { o.Permissions.Allow = []spec.PermissionRule{{Text: "shell(rm:*)"}} })},
		{"a rule of an agent", "a rule that allows", opened(func(o *supervisor.Opened) {
			o.Definitions[0].Permissions = &spec.Permissions{Allow: []spec.PermissionRule{{Text: "shell(rm:*)"}}}
		})},
		{"an agent of another program", "may call agents of other programs", opened(func(o *supervisor.Opened) {
			o.Definitions[0].Delegates = append(slices.Clone(o.Definitions[0].Delegates), "cc/derek/reviewer")
		})},
		{"a mode of an agent", "mode bypassPermissions", opened(func(o *supervisor.Opened) {
			o.Definitions[0].Permissions = &spec.Permissions{Mode: "bypassPermissions"}
		})},
		{"no permissions", "no permissions", opened(func(o *supervisor.Opened) { o.Permissions = nil })},
		{"a writable place", "may write to", opened(func(o *supervisor.Opened) { o.Writable = append(o.Writable, "/") })},
		{"a directory", "would be refused here", opened(func(o *supervisor.Opened) { o.Workspace = "/" })},
		{"a pool", "node pool", opened(func(o *supervisor.Opened) { o.NodePool = "gpu" })},
		{"a script", "cannot name a script|not a script|would be refused", opened(func(o *supervisor.Opened) { o.Model.Name = "script//etc/passwd" })},
		{"a class", "is declared as", opened(func(o *supervisor.Opened) {
			for i := range o.Tools {
				o.Tools[i].Class = map[bool]model.Class{true: model.Idempotent, false: model.Read}[o.Tools[i].Class == model.Read]
			}
		})},
		{"another run", "opens the run", opened(func(o *supervisor.Opened) { o.Run = "other" })},
		{"a changed goal", "does not come to the state", opened(func(o *supervisor.Opened) { o.Goal = "do something else" })},
		{"no dump", "is not a consistent dump", func(f *runfile.File) { f.Header.Dump = false }},
		{"redacted", "is redacted", func(f *runfile.File) { f.Header.Redacted = true }},
		{"an entry of tomorrow", "which is to come", func(f *runfile.File) { f.Entries[0].At = time.Now().Add(24 * time.Hour).UnixMilli() }},
		{"no supervisor", "does not begin with a run", func(f *runfile.File) { f.Entries = logsOf(f.Entries, string(spec.Root)) }},
		{"no agent", "", func(f *runfile.File) { f.Entries = logsOf(f.Entries, mailbox.Super) }},
		{"a gap", "", func(f *runfile.File) {
			f.Entries = append(f.Entries[:len(f.Entries)-3:len(f.Entries)-3], f.Entries[len(f.Entries)-2:]...)
		}},
		{"an answer", "people or hooks have given 1 approvals", func(f *runfile.File) {
			f.Entries = append(f.Entries, commandEntry(t, mailbox.At(f.Header.Run, string(spec.Root)), agent.Answered{Query: "1-0.1", Decision: "approve"}))
		}},
	}
}

// changeOpened changes the first entry of the supervisor's log.
func changeOpened(t *testing.T, f *runfile.File, change func(*supervisor.Opened)) {
	t.Helper()
	for i, m := range f.Entries {
		if m.To.Agent() != mailbox.Super {
			continue
		}
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		var o supervisor.Opened
		if err := mailbox.Unmarshal(e.Items[0].Body, &o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if e.Items[0].Body, err = mailbox.Marshal(o); err != nil {
			t.Fatal(err)
		}
		if f.Entries[i].Data, err = mailbox.Encode(e); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("there is no log of a supervisor")
}

func logsOf(entries []mailbox.Message, agent string) (kept []mailbox.Message) {
	for _, m := range entries {
		if m.To.Agent() == agent {
			kept = append(kept, m)
		}
	}
	return kept
}

// commandEntry is the entry of a request.
func commandEntry(t *testing.T, to mailbox.Address, f agent.Fact) mailbox.Message {
	t.Helper()
	body, err := mailbox.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	kind := f.(interface{ Kind() string }).Kind()
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: "forged-" + kind, Kind: kind, Body: body}}})
	if err != nil {
		t.Fatal(err)
	}
	return mailbox.Message{To: to, Place: 1 << 40, At: time.Now().UnixMilli(), Data: data}
}
