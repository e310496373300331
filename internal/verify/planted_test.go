package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// runLog is a run whose entries are decoded, to plant a violation.
type runLog struct {
	t       *testing.T
	entries []plantedEntry
	claim   verify.Claim
}

type plantedEntry struct {
	to mailbox.Address
	mailbox.Entry
	raw []byte // instead of the entry
}

// openRunLog decodes a recorded run. The entries lose their hashes, so that a violation shows by its own rule.
func openRunLog(t *testing.T, name string) *runLog {
	t.Helper()
	file := readRunFile(t, "../replay/testdata/runs/0.1.0/"+name+".jsonl")
	r := &runLog{t: t, claim: claimOf(t, file)}
	for _, m := range file.Entries {
		e, err := mailbox.Decode(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		e.Floor, e.Hash = 0, nil
		r.entries = append(r.entries, plantedEntry{to: m.To, Entry: e})
	}
	return r
}

func (r *runLog) verify() verify.Report {
	r.t.Helper()
	log := make([]mailbox.Message, len(r.entries))
	for i, e := range r.entries {
		data, err := e.raw, error(nil)
		if data == nil {
			data, err = mailbox.Encode(e.Entry)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		log[i] = mailbox.Message{To: e.to, Data: data}
	}
	return verify.Run(log, r.claim)
}

// find returns the place of the first entry in a log, "root" or "super", that begins with a kind.
func (r *runLog) find(agent, kind string) int {
	r.t.Helper()
	i := slices.IndexFunc(r.entries, func(e plantedEntry) bool {
		return e.to.Agent() == agent && slices.ContainsFunc(e.Items,
			func(item mailbox.Item) bool { return item.Kind == kind })
	})
	if i < 0 {
		r.t.Fatalf("no %s in the log of %s", kind, agent)
	}
	return i
}

// item returns the first item of a kind in a log.
func (r *runLog) item(agent, kind string) *mailbox.Item {
	e := &r.entries[r.find(agent, kind)]
	e.Items = slices.Clone(e.Items)
	return &e.Items[slices.IndexFunc(e.Items, func(item mailbox.Item) bool { return item.Kind == kind })]
}

// edit changes the body of the first item of a kind.
func (r *runLog) edit(agent, kind string, change func(body map[string]any)) {
	r.t.Helper()
	item := r.item(agent, kind)
	item.Body = r.changed(item.Body, change)
}

// changed returns a body that is changed.
func (r *runLog) changed(raw []byte, change func(body map[string]any)) []byte {
	r.t.Helper()
	var body map[string]any
	if err := mailbox.Unmarshal(raw, &body); err != nil {
		r.t.Fatal(err)
	}
	change(body)
	return r.body(body)
}

func (r *runLog) body(v any) []byte {
	r.t.Helper()
	raw, err := mailbox.Marshal(v)
	if err != nil {
		r.t.Fatal(err)
	}
	return raw
}

// insert puts a copy of the first entry of a kind at a place, changed.
func (r *runLog) insert(at int, agent, kind string, change func(e *plantedEntry)) {
	r.t.Helper()
	e := r.entries[r.find(agent, kind)]
	i := slices.IndexFunc(e.Items, func(item mailbox.Item) bool { return item.Kind == kind })
	e.Items = slices.Clone(e.Items[i : i+1])
	change(&e)
	r.entries = slices.Insert(r.entries, at, e)
}

// own makes an entry of the current activation of root with another fact.
func (r *runLog) own(at int, kind, key string, body any) {
	r.insert(at, "root", "replied", func(e *plantedEntry) {
		e.Items[0] = mailbox.Item{Kind: kind, Body: r.body(body),
			ID: fmt.Sprintf("%s!%s.%s.%d-%d.%s", e.to, kind, key, e.Epoch.Lease, e.Epoch.Start, e.Start)}
	})
}

const (
	plain    = "completes_within_budget"
	children = "children_side_by_side"
)

// violation is a violation that is planted into a run, and the rule that finds it.
type violation struct {
	name, run string
	rule      verify.Rule
	plant     func(r *runLog)
}

// plants are violations of how logs are written and what actors send. callPlants are those of what agents do,
// sumPlants those of the budget, contextPlants those of changes of tools and prompts, narrowingPlants those of rights, and
// chargePlants those of charges and limits of subtrees.
var plants = []violation{
	{"an entry that is no entry", plain, verify.Readable,
		func(r *runLog) { r.entries[r.find("root", "checkpoint")].raw = []byte{0xc1, 2, 3} }},
	{"a body that is no body", plain, verify.Readable, func(r *runLog) { r.item("super", "settle").Body = r.body("x") }},
	{"a log without its head", plain, verify.Head,
		func(r *runLog) { i := r.find("root", "submitted"); r.entries = slices.Delete(r.entries, i, i+1) }},
	{"a claim of more entries than there are", plain, verify.Floor, func(r *runLog) {
		e := &r.entries[r.find("root", "replied")]
		e.Floor, e.Hash = 999, make([]byte, 16)
	}},
	{"a hash of other entries", plain, verify.Chain,
		func(r *runLog) { e := &r.entries[r.find("root", "replied")]; e.Floor, e.Hash = 1, make([]byte, 16) }},
	{"an activation that has not claimed", plain, verify.Claimed,
		func(r *runLog) { r.entries[r.find("root", "replied")].Epoch = mailbox.Epoch{Lease: 99, Start: 1} }},
	{"two activations at once", plain, verify.OneActing,
		func(r *runLog) { r.entries[r.find("root", "replied")].Start = "other" }},
	{"an id of another entry", plain, verify.OwnID,
		func(r *runLog) { r.item("root", "replied").ID = "eval.root!failed.x.1-1.y" }},
	{"work after the end", plain, verify.AfterEnd, func(r *runLog) {
		r.own(len(r.entries), "started", "9-0.1", map[string]any{"c": "9-0", "a": 1})
		r.own(len(r.entries), "returned", "9-0.1", map[string]any{"c": "9-0", "a": 1, "t": "done"})
	}},
	{"an attempt that begins twice", plain, verify.StartedOnce, func(r *runLog) {
		at := r.find("root", "closed")
		r.own(at, "started", "1-0.1", map[string]any{"c": "1-0", "a": 1})
		r.insert(at+1, "root", "resumed", func(e *plantedEntry) {
			e.Epoch, e.Start = mailbox.Epoch{Lease: 50, Start: 1}, "later"
			e.Items[0].ID = string(e.to) + "!resumed.later.50-1.later"
		})
		r.insert(at+2, "root", "started", func(e *plantedEntry) {
			e.Epoch, e.Start = mailbox.Epoch{Lease: 50, Start: 1}, "later"
			e.Items[0].ID = string(e.to) + "!started.1-0.1.50-1.later"
		})
	}},
	{"a side effect that never began", plain, verify.StartedFirst, func(r *runLog) {
		r.edit("root", "submitted", func(body map[string]any) {
			for _, tool := range body["t"].(map[string]any)["t"].([]any) {
				tool.(map[string]any)["c"] = "effect"
			}
		})
	}},
	{"a call with two results", plain, verify.AnsweredOnce, func(r *runLog) {
		r.insert(r.find("root", "returned")+1, "root", "returned", func(e *plantedEntry) {
			var body map[string]any
			if err := mailbox.Unmarshal(e.Items[0].Body, &body); err != nil {
				r.t.Fatal(err)
			}
			body["t"] = "another text"
			e.Items[0].Body = r.body(body)
		})
	}},
	{"a call without a result", plain, verify.AnsweredOnce, func(r *runLog) {
		r.own(r.find("root", "returned"), "started", "9-0.1", map[string]any{"c": "9-0", "a": 1})
	}},
	{"a second task", plain, verify.OneTask, func(r *runLog) {
		r.insert(r.find("root", "replied"), "root", "submitted", func(e *plantedEntry) { e.Items[0].N = 9000 })
	}},
	{"a message of nobody", plain, verify.Cause,
		func(r *runLog) { r.entries[r.find("super", "finish")].From = "eval.ghost" }},
	{"a message without its cause", plain, verify.Cause, func(r *runLog) { r.item("super", "finish").N = 9999 }},
	{"a message that changes", plain, verify.Unchanged, func(r *runLog) {
		r.insert(len(r.entries), "super", "finish",
			func(e *plantedEntry) { e.Items[0].Body = r.body(map[string]any{"t": 77}) })
	}},
	{"a message that overtakes", plain, verify.InOrder, func(r *runLog) {
		r.insert(len(r.entries), "super", "finish", func(e *plantedEntry) { e.Items[0].N, e.Items[0].I = 1, 77 })
	}},
	{"an end that nobody got", plain, verify.Delivered, func(r *runLog) { r.item("super", "finish").Kind = "unpark" }},
	{"an end that was sent twice", plain, verify.Delivered, func(r *runLog) {
		r.insert(len(r.entries), "super", "finish", func(e *plantedEntry) { e.Items[0].I += 100 })
	}},
	{"tokens without a reservation", plain, verify.Reserved, func(r *runLog) {
		r.edit("super", "settle", func(body map[string]any) { body["l"] = 77; delete(body, "w") })
	}},
	{"tokens out of an allowance that was not granted", plain, verify.Reserved, func(r *runLog) {
		r.edit("super", "settle", func(body map[string]any) { body["w"] = 55 })
	}},
	{"a reservation that is settled twice", plain, verify.Settled, func(r *runLog) {
		r.insert(len(r.entries), "super", "settle", func(e *plantedEntry) { e.Items[0].N, e.Items[0].I = 9000, 100 })
	}},
	{"a reservation that is never settled", plain, verify.Settled, func(r *runLog) {
		r.edit("super", "settle", func(body map[string]any) { body["l"] = 77 })
	}},
	{"more tokens than the limit", plain, verify.Limit, func(r *runLog) {
		r.edit("super", "opened", func(body map[string]any) { body["l"] = map[string]any{"t": 1} })
	}},
	{"a model call after the cancel", plain, verify.Canceled, func(r *runLog) {
		r.insert(r.find("root", "submitted")+1, "root", "granted", func(e *plantedEntry) {
			e.Items[0] = mailbox.Item{N: 2, I: 77, Kind: "canceled", Body: r.body(map[string]any{"w": "stop"})}
		})
	}},
	{"a tool that is forbidden", plain, verify.Rights, func(r *runLog) {
		r.edit("root", "submitted", func(body map[string]any) {
			task := body["t"].(map[string]any)
			task["f"] = []any{task["t"].([]any)[0].(map[string]any)["n"]}
		})
	}},
	{"a child with more rights than its parent", children, verify.Rights, func(r *runLog) {
		r.edit("root", "submitted", func(body map[string]any) { body["t"].(map[string]any)["f"] = []any{"wipe"} })
	}},
}

// TestPlantedViolations: each planted violation is found by its rule, and without it nothing is. Each rule has one.
func TestPlantedViolations(t *testing.T) {
	t.Parallel()
	all := slices.Concat(plants, callPlants, sumPlants, contextPlants, narrowingPlants, chargePlants)
	if len(all) < 30 {
		t.Error(len(all))
	}
	for _, rule := range verify.Rules() {
		if !slices.ContainsFunc(all, func(p violation) bool { return p.rule == rule }) {
			t.Errorf("no violation of %s is planted", rule)
		}
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if f := openRunLog(t, p.run).verify().Findings; len(f) > 0 {
				t.Fatalf("before: %v", f)
			}
			r := openRunLog(t, p.run)
			p.plant(r)
			found := r.verify().Findings
			if !slices.ContainsFunc(found,
				func(f verify.Finding) bool { return f.Rule == p.rule && f.Entry > 0 && f.Log != "" }) {
				t.Errorf("not found by %s: %v", p.rule, found)
			}
		})
	}
}

// TestAChangedByteIsNamed: the hash after a changed byte names the entries of which one was changed.
func TestAChangedByteIsNamed(t *testing.T) {
	t.Parallel()
	log := readFile(t, "../replay/testdata/runs/0.1.0/"+plain+".jsonl")
	i := slices.IndexFunc(log, func(m mailbox.Message) bool { return m.To.Agent() == "root" })
	log[i].Data = slices.Clone(log[i].Data)
	log[i].Data[len(log[i].Data)-1] ^= 1
	found := verify.Logs(log).Findings
	if !slices.ContainsFunc(found, func(f verify.Finding) bool {
		return f.Rule == verify.Chain && f.Log == "eval.root" && strings.Contains(f.Text, "one of the entries 1 to ")
	}) {
		t.Errorf("%v", found)
	}
}
