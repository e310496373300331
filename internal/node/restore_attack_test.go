package node

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// askedCommand is a run file of a run that waits for a person's approval of a command in a directory. Its node is gone.
func askedCommand(t *testing.T) (f runfile.File, dir, agents string) {
	t.Helper()
	dir, agents = t.TempDir(), writeHandAgents(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, agents} })
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Agent: "hand", Agents: agents, Dir: dir, Model: writeScript(t, twoCommands)})
	parkedQuestion(t, c, run)
	f = dumpRun(t, c, run)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return f, dir, agents
}

// changeFact changes the first fact of a kind in a log, and returns the index of its entry in that log.
func changeFact[F agent.Fact](t *testing.T, f *runfile.File, at mailbox.Address, change func(*F)) (n uint64) {
	t.Helper()
	var fact F
	for i, m := range f.Entries {
		if m.To != at {
			continue
		}
		n++
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Items) == 0 || e.Items[0].Kind != fact.Kind() {
			continue
		}
		if err := mailbox.Unmarshal(e.Items[0].Body, &fact); err != nil {
			t.Fatal(err)
		}
		change(&fact)
		if e.Items[0].Body, err = mailbox.Marshal(fact); err != nil {
			t.Fatal(err)
		}
		if f.Entries[i].Data, err = mailbox.Encode(e); err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Fatalf("%s has no %s", at, fact.Kind())
	return 0
}

// keepFirst drops the entries of a log behind the first n.
func keepFirst(entries []mailbox.Message, at mailbox.Address, n uint64) []mailbox.Message {
	seen := uint64(0)
	return slices.DeleteFunc(slices.Clone(entries), func(m mailbox.Message) bool {
		if m.To == at {
			seen++
		}
		return m.To == at && seen > n
	})
}

// keepCaused drops the entries of a log from the first one on that has a message of a later entry than the n-th of its sender.
func keepCaused(t *testing.T, entries []mailbox.Message, at, sender mailbox.Address, n uint64) []mailbox.Message {
	t.Helper()
	kept := uint64(0)
	for _, m := range entries {
		if m.To != at {
			continue
		}
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if e.From == sender && slices.ContainsFunc(e.Items, func(i mailbox.Item) bool { return i.N > n }) {
			break
		}
		kept++
	}
	return keepFirst(entries, at, kept)
}

// TestAttackForgedHookAnswerIsNoApproval: a file in which the hooks have let a command pass that needs a person is not
// restored unless somebody accepts its approvals: it would run the command.
//
//behaviour:shows F5
func TestAttackForgedHookAnswerIsNoApproval(t *testing.T) {
	t.Parallel()
	f, dir, agents := askedCommand(t)
	root, super := mailbox.At(f.Header.Run, string(spec.Root)), mailbox.At(f.Header.Run, mailbox.Super)
	n := changeFact(t, &f, rootAddress(t, f), func(h *agent.Hooked) {
		for i := range h.Answers {
			h.Answers[i] = spec.HookAnswer{Hook: h.Answers[i].Hook, Decision: spec.HookAllow}
		}
	})
	f.Entries = keepFirst(f.Entries, rootAddress(t, f), n)
	f.Entries = keepCaused(t, f.Entries, super, root, n-1)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, agents} }) // of the same name
	c := connectClient(t, h)
	_, err := sendRestore(t, c, f, client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents, Dir: dir}})
	if codeOf(err) != client.CodeForbidden || !strings.Contains(err.Error(), "1 approvals") {
		t.Errorf("%v, want a refusal that counts the approval", err)
	}
	if err == nil {
		parkedQuestion(t, c, f.Header.Run)
	}
	if fileExists(t, dir, "first") {
		t.Error("the command ran, and nobody has approved it")
	}
}

// rootAddress is the log of the root, in its node pool.
func rootAddress(t *testing.T, f runfile.File) mailbox.Address {
	t.Helper()
	for _, m := range f.Entries {
		if m.To.Agent() == string(spec.Root) {
			return m.To
		}
	}
	t.Fatal("the root has no log")
	return ""
}

// TestAttackShortenedFiles: a file whose log lacks entries that the other logs know of is refused, since the run would
// repeat what these entries record.
//
//behaviour:shows F5
func TestAttackShortenedFiles(t *testing.T) {
	t.Parallel()
	agents := writeAskerAgent(t)
	f := parkedFiles(t, agents, 1)[0]
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	r := client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents}}
	for _, at := range []mailbox.Address{rootAddress(t, f), mailbox.At(f.Header.Run, mailbox.Super)} {
		entries := uint64(len(logsOf(f.Entries, at.Agent())))
		refused := 0
		for n := entries - 1; n > 0; n-- {
			short := runfile.File{Header: f.Header, Entries: keepFirst(f.Entries, at, n)}
			if provesLoss(t, short.Entries) {
				refused++
				if _, err := sendRestore(t, c, short, r); codeOf(err) != client.CodeBad {
					t.Fatalf("%d of %d entries of %s: %v, and another log has more", n, entries, at, err)
				}
			}
		}
		if refused < 3 {
			t.Errorf("%s: %d of %d shortened files lack what the other log knows", at, refused, entries)
		}
	}
	if logs, err := h.post.Addresses(testContext(t), f.Header.Run); err != nil || len(logs) != 0 {
		t.Errorf("what was refused has left %v, %v", logs, err)
	}
}

// provesLoss reports whether a log has a message whose cause its sender's log lacks.
func provesLoss(t *testing.T, entries []mailbox.Message) bool {
	t.Helper()
	length := map[string]uint64{}
	for _, m := range entries {
		length[m.To.Agent()]++
	}
	for _, m := range entries {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if e.From != "" && e.From != m.To && slices.ContainsFunc(e.Items, func(i mailbox.Item) bool { return i.N > length[e.From.Agent()] }) {
			return true
		}
	}
	return false
}

// TestAttackRestoredRights: what a request cannot bring, or would be compared with something else, is no way around the
// comparison of rights.
//
//behaviour:shows F5
func TestAttackRestoredRights(t *testing.T) {
	t.Parallel()
	f, dir, agents := askedCommand(t)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, agents} })
	c := connectClient(t, h)
	r := client.RestoreRequest{OriginalStopped: true, AcceptApprovals: true, Named: client.RunRequest{Agents: agents, Dir: dir}}
	for _, a := range []forgery{
		{"a tool of another class that a rule hides from the comparison", "no request brings", func(f *runfile.File) {
			changeOpened(t, f, func(o *supervisor.Opened) {
				o.Permissions.Deny = append(o.Permissions.Deny, spec.PermissionRule{Text: "Write", From: "--disallowed-tools"})
				for i := range o.Tools {
					if o.Tools[i].Name == "write_file" {
						o.Tools[i].Class = "read"
					}
				}
			})
		}},
		{"a script that writes summaries", "not a script|cannot name a script", func(f *runfile.File) {
			changeOpened(t, f, func(o *supervisor.Opened) { o.LoopOptions.Context.Model = &spec.Model{Name: "script//etc/passwd"} })
		}},
		{"a link to the directory", "is a link|does not come to the state", func(f *runfile.File) {
			changeOpened(t, f, func(o *supervisor.Opened) { o.Workspace = link })
		}},
		{"a limit whose sums overflow", "max_budget_usd", func(f *runfile.File) {
			changeOpened(t, f, func(o *supervisor.Opened) { o.Limits.Nano = 1 << 62 })
		}},
		{"an agent that may write unasked", "an approval of all writes", func(f *runfile.File) {
			changeOpened(t, f, func(o *supervisor.Opened) {
				own := permission.Merge(spec.Permissions{}, o.Definitions[0].Permissions)
				own.Yes = true
				o.Definitions[0].Permissions = &own
			})
		}},
		{"notes of the user", "keeps the notes of the user", func(f *runfile.File) {
			changeOpened(t, f, func(o *supervisor.Opened) { o.Definitions[0].Memory = "user" })
		}},
		{"a negative limit", "max_depth", func(f *runfile.File) {
			changeOpened(t, f, func(o *supervisor.Opened) { o.Limits.Depth = -1 })
		}},
		{"a policy that no request could set", "policy", func(f *runfile.File) {
			set := supervisor.PolicySet{Policy: supervisor.Policy{Rules: []supervisor.Rule{{Name: "x", On: "no such moment"}}}}
			f.Entries = append(f.Entries, commandEntry(t, mailbox.At(f.Header.Run, mailbox.Super), set))
		}},
	} {
		checkForgery(t, c, a, f, r)
	}
}

// checkForgery complains of a file that is restored although its author has forged it.
func checkForgery(t *testing.T, c *client.Client, a forgery, f runfile.File, r client.RestoreRequest) {
	t.Helper()
	changed := runfile.File{Header: f.Header, Entries: slices.Clone(f.Entries)}
	a.change(&changed)
	_, err := sendRestore(t, c, changed, r)
	if err == nil || !slices.ContainsFunc(strings.Split(a.told, "|"), func(told string) bool { return strings.Contains(err.Error(), told) }) {
		t.Errorf("%s: %v, want %q", a.name, err, a.told)
	}
}

// TestAttackRestoredChanges: limits and models that the logs set after the first entry are judged like those of the first.
//
//behaviour:shows F5
func TestAttackRestoredChanges(t *testing.T) {
	t.Parallel()
	f, dir, agents := askedCommand(t)
	c := connectClient(t, startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir, agents} }))
	r := client.RestoreRequest{OriginalStopped: true, AcceptApprovals: true, Named: client.RunRequest{Agents: agents, Dir: dir}}
	for _, a := range []forgery{
		{"a limit of tokens that was set and no request could set", "max_tokens", func(f *runfile.File) {
			set := supervisor.LimitSet{Limits: spec.RunLimits{Tokens: 1 << 60}}
			f.Entries = append(f.Entries, commandEntry(t, mailbox.At(f.Header.Run, mailbox.Super), set))
		}},
		{"a negative limit that was set", "limits that were set", func(f *runfile.File) {
			set := supervisor.LimitSet{Limits: spec.RunLimits{Tokens: -5}}
			f.Entries = append(f.Entries, commandEntry(t, mailbox.At(f.Header.Run, mailbox.Super), set))
		}},
		{"a time limit without end that was set", "set time limits of", func(f *runfile.File) {
			set := supervisor.LimitSet{Patch: true, SoftMS: 1000, HardMS: 1 << 60}
			f.Entries = append(f.Entries, commandEntry(t, mailbox.At(f.Header.Run, mailbox.Super), set))
		}},
		{"a script that was set as the model of an agent", "not a script|cannot name a script", func(f *runfile.File) {
			set := agent.ModelSet{Model: spec.Model{Name: "script//etc/passwd"}}
			f.Entries = append(f.Entries, commandEntry(t, rootLog(t, *f), set))
		}},
		{"a script that was set as the model of the run", "not a script|cannot name a script", func(f *runfile.File) {
			set := agent.ModelSet{Model: spec.Model{Name: "script//etc/passwd"}}
			f.Entries = append(f.Entries, commandEntry(t, mailbox.At(f.Header.Run, mailbox.Super), set))
		}},
		{"a model without a price that was set under a limit in money", "no credentials for openai/unheard-of|the price of openai/unheard-of", func(f *runfile.File) {
			limit := supervisor.LimitSet{Limits: spec.RunLimits{Nano: 1_000_000}, Patch: true}
			set := agent.ModelSet{Model: spec.Model{Name: "openai/unheard-of"}}
			last := commandEntry(t, mailbox.At(f.Header.Run, mailbox.Super), set)
			last.Place++
			f.Entries = append(f.Entries, commandEntry(t, mailbox.At(f.Header.Run, mailbox.Super), limit), last)
		}},
	} {
		checkForgery(t, c, a, f, r)
	}
}

// rootLog returns the address of the log of the root, with its node pool.
func rootLog(t *testing.T, f runfile.File) mailbox.Address {
	t.Helper()
	i := slices.IndexFunc(f.Entries, func(m mailbox.Message) bool { return m.To.Agent() == string(spec.Root) })
	if i < 0 {
		t.Fatal("no log of the root")
	}
	return f.Entries[i].To
}

// TestAttackUploadOfAnotherRun: a restore removes its upload, so an upload under the id of a run is refused.
//
//behaviour:shows F5
func TestAttackUploadOfAnotherRun(t *testing.T) {
	t.Parallel()
	agents := writeAskerAgent(t)
	files := parkedFiles(t, agents, 2)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c := connectClient(t, h)
	r := client.RestoreRequest{OriginalStopped: true, Named: client.RunRequest{Agents: agents}}
	victim := files[0].Header.Run
	var data bytes.Buffer
	if err := runfile.Write(&data, files[1]); err != nil {
		t.Fatal(err)
	}
	ref, err := h.blobs.Put(testContext(t), victim, data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sendRestore(t, c, files[0], r); err != nil {
		t.Fatal(err)
	}
	r.RunID, r.Upload, r.Parts = files[1].Header.Run, victim, []string{ref}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	nc := connectRole(t, h, bus.RoleClient)
	reply, err := nc.Request("troupe.cmd.restore", raw, patience)
	if err != nil || reply.Header.Get("Nats-Service-Error-Code") != client.CodeConflict {
		t.Errorf("an upload under the id of a run: %v, %.300s", err, reply.Data)
	}
	if _, _, err := h.blobs.Get(testContext(t), victim, ref, 0, 1); err != nil {
		t.Errorf("a blob of the run is gone: %v", err)
	}
}
