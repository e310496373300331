package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	canceled = "canceled_at_the_boundary"
	// unknown ends with the question whether an effect of unknown outcome may run again.
	unknown = "resume_never_repeats_an_effect"
)

// command puts a command of a client into a log.
func (r *runLog) command(at int, agent, kind string, body any) {
	to := r.entries[r.find(agent, "resumed")].to
	r.put(at, plantedEntry{to: to, Entry: mailbox.Entry{Form: mailbox.Form,
		Items: []mailbox.Item{{Kind: kind, ID: "planted-" + kind, Body: r.body(body)}}}})
}

// put puts an entry into its log. The messages that later entries of the log have caused name the new numbers of their
// causes.
func (r *runLog) put(at int, e plantedEntry) {
	r.entries = slices.Insert(r.entries, at, e)
	place := r.placeOf(at)
	for i := range r.entries {
		if m := &r.entries[i]; m.From == e.to && m.to != e.to {
			m.Items = slices.Clone(m.Items)
			for k := range m.Items {
				if m.Items[k].N >= place {
					m.Items[k].N++
				}
			}
		}
	}
}

// message puts a message of root into the log of the run.
func (r *runLog) message(kind string, body any) {
	r.insert(r.find("super", "closed"), "super", "finish", func(e *plantedEntry) {
		e.Items[0].I, e.Items[0].Kind, e.Items[0].Body = 50, kind, r.body(body)
	})
}

// begin lets the newest activation of root begin an attempt of the call 1-0, at the end of the run.
func (r *runLog) begin(attempt int) {
	r.t.Helper()
	last := 0
	for i, e := range r.entries {
		if e.To() == "root" && e.Items[0].Kind == "resumed" {
			last = i
		}
	}
	e := r.entries[last]
	id := strings.Replace(e.Items[0].ID, "!resumed."+e.Start, "!started.1-0", 1)
	e.Items = []mailbox.Item{{Kind: "started", ID: id,
		Body: r.body(map[string]any{"c": "1-0", "a": attempt, "s": e.Start})}}
	r.entries = append(r.entries, e)
}

// To is the agent of the log.
func (e plantedEntry) To() string { return e.to.Agent() }

// answer lets a person answer the question whether the call 1-0 may run again, at the end of the run.
func (r *runLog) answer(decision string) {
	r.command(len(r.entries), "root", "answered", map[string]any{"q": "1-0.1", "d": decision})
}

// approveAs lets one of two people approve that the call 1-0 runs again, at the end of the run.
func (r *runLog) approveAs(name string) {
	r.command(len(r.entries), "root", "answered", map[string]any{"q": "1-0.1", "d": "approve", "b": name})
}

// child edits the task of the first child.
func (r *runLog) child(change func(task map[string]any)) {
	r.t.Helper()
	for _, e := range r.entries {
		if e.To() != "root" && e.To() != "super" {
			r.edit(e.To(), "submitted", func(body map[string]any) { change(body["t"].(map[string]any)) })
			return
		}
	}
	r.t.Fatal("no child")
}

func (r *runLog) root(change func(task map[string]any)) {
	r.edit("root", "submitted", func(body map[string]any) { change(body["t"].(map[string]any)) })
}

// reply is the body of a reply under a reservation.
func reply(reservation int) map[string]any {
	return map[string]any{"l": reservation,
		"r": map[string]any{"m": map[string]any{"r": "assistant", "t": "x"}, "k": true,
			"u": map[string]any{"i": 5000, "o": 5000}}}
}

var callPlants = []violation{
	{"a reading call without a result", plain, verify.AnsweredOnce, func(r *runLog) {
		i := r.find("root", "returned")
		r.entries = slices.Delete(r.entries, i, i+1)
	}},
	{"a reply that nobody reserved for", plain, verify.Reserved,
		func(r *runLog) { r.edit("root", "replied", func(b map[string]any) { b["l"] = 99 }) }},
	{"another reply that nobody reserved for", plain, verify.Settled,
		func(r *runLog) { r.own(r.find("root", "closed"), "replied", "model-98", reply(98)) }},
	{"a reply before its grant", plain, verify.Reserved,
		func(r *runLog) { r.own(r.find("root", "granted"), "replied", "model-1", reply(1)) }},
	{"two replies under one reservation", plain, verify.OneReply,
		func(r *runLog) { r.own(r.find("root", "closed"), "replied", "model-1", reply(1)) }},
	{"a settlement of another amount than its reply", plain, verify.SettledAmount, func(r *runLog) {
		r.edit("super", "settle", func(b map[string]any) { b["u"] = map[string]any{"t": 1} })
	}},
	{"a settlement as lost of what a reply reports", plain, verify.SettledAmount, func(r *runLog) {
		r.edit("super", "settle", func(b map[string]any) { b["u"], b["x"] = map[string]any{}, true })
	}},
	{"a settlement that no reply caused", plain, verify.SettledAmount, func(r *runLog) { r.item("super", "settle").N-- }},
	{"a tool that begins after the cancel", canceled, verify.Canceled, func(r *runLog) {
		at := r.find("root", "closed")
		r.own(at, "started", "7-0.1", map[string]any{"c": "7-0", "a": 1})
		r.own(at+1, "returned", "7-0.1", map[string]any{"c": "7-0", "a": 1, "t": "done"})
	}},
	{"a reading call of a reply that came after the cancel", plain, verify.Canceled, func(r *runLog) {
		r.insert(r.find("root", "replied"), "root", "granted", func(e *plantedEntry) {
			e.Items[0] = mailbox.Item{N: e.Items[0].N, I: 77, Kind: "canceled", Body: r.body(map[string]any{"w": "stop"})}
		})
	}},
	{"a second model call that ends after the cancel", plain, verify.Canceled, func(r *runLog) {
		r.command(r.find("root", "submitted")+1, "root", "canceled", map[string]any{"w": "stop"})
	}},
	{"an effect that is repeated without an approval", unknown, verify.Approved, func(r *runLog) { r.begin(2) }},
	{"an effect that is repeated although a person said no", unknown, verify.Approved,
		func(r *runLog) { r.answer("deny"); r.begin(2) }},
	{"an approval that is used twice", unknown, verify.Approved,
		func(r *runLog) { r.answer("approve"); r.begin(2); r.begin(3) }},
	{"an approval of another call", unknown, verify.Approved, func(r *runLog) {
		r.edit("super", "park", func(b map[string]any) { b["c"] = "1-7" })
		r.answer("approve")
		r.begin(2)
	}},
	{"an approval of other arguments", unknown, verify.Approved, func(r *runLog) {
		r.edit("super", "park", func(b map[string]any) { b["g"] = "sha-of-what-was-asked" })
		r.command(len(r.entries), "root", "answered",
			map[string]any{"q": "1-0.1", "d": "approve", "g": "sha-of-other-arguments"})
		r.begin(2)
	}},
	{"a call that one of two people has approved", unknown, verify.Approved, func(r *runLog) {
		r.edit("super", "park", func(b map[string]any) { b["n"] = 2 })
		r.approveAs("ann")
		r.begin(2)
	}},
	{"a call that one person has approved twice", unknown, verify.Approved, func(r *runLog) {
		r.edit("super", "park", func(b map[string]any) { b["n"] = 2 })
		r.approveAs("ann")
		r.approveAs("Ann")
		r.begin(2)
	}},
	{"a call that a fork has approved as the second person", unknown, verify.Approved, func(r *runLog) {
		r.edit("super", "park", func(b map[string]any) { b["n"] = 2 })
		r.approveAs("ann")
		r.approveAs("fork")
		r.begin(2)
	}},
	{"a call that nobody has approved as the second person", unknown, verify.Approved, func(r *runLog) {
		r.edit("super", "park", func(b map[string]any) { b["n"] = 2 })
		r.approveAs("ann")
		r.approveAs("a person")
		r.begin(2)
	}},
	{"a call that one person has approved in two forms of a name", unknown, verify.Approved, func(r *runLog) {
		r.edit("super", "park", func(b map[string]any) { b["n"] = 2 })
		r.approveAs("J\u00f6rg")
		r.approveAs("Jo\u0308rg\u3164")
		r.begin(2)
	}},
	{"a rule that no person added", plain, verify.Approved,
		func(r *runLog) { r.message("allow_rule", map[string]any{"r": []byte("shell(rm:*)")}) }},
	{"a child with a tool that its parent lacks", children, verify.Rights, func(r *runLog) {
		r.child(func(task map[string]any) {
			tools, _ := task["t"].([]any)
			task["t"] = append(tools, map[string]any{"n": "rm_rf", "s": `{"type":"object"}`, "c": "irreversible"})
		})
	}},
	{"a tool that an agent has as a harmless one", plain, verify.Rights, func(r *runLog) {
		r.root(func(task map[string]any) { task["t"].([]any)[0].(map[string]any)["c"] = "idempotent" })
	}},
	{"a command that the run does not have", plain, verify.Rights, func(r *runLog) {
		r.root(func(task map[string]any) { task["z"] = []any{map[string]any{"n": "lookup", "l": "rm -rf /"}} })
	}},
	{"a path that the run may not write", plain, verify.Rights, func(r *runLog) {
		r.root(func(task map[string]any) { task["u"] = []any{"/etc"} })
	}},
	{"a child without the permissions of its parent", children, verify.Rights, func(r *runLog) {
		r.root(func(task map[string]any) { task["pe"] = []any{map[string]any{"m": "plan"}} })
	}},
	{"a child without a rule of its parent that denies", children, verify.Rights, func(r *runLog) {
		r.root(func(task map[string]any) {
			task["pe"] = []any{map[string]any{"d": []any{[]byte("shell(rm:*)\x00policy")}}}
		})
		r.child(func(task map[string]any) { task["pe"] = []any{map[string]any{"d": []any{}}} })
	}},
	{"a child without a hook of its parent", children, verify.Rights, func(r *runLog) {
		r.root(func(task map[string]any) {
			task["a"].(map[string]any)["h"] = []any{map[string]any{"n": "guard", "p": "pre_tool"}}
		})
	}},
	{"a child with a rule that nobody added", children, verify.Rights, func(r *runLog) {
		r.child(func(task map[string]any) { task["pg"] = []any{[]byte("shell(rm:*)")} })
	}},
	{"a finished run without its end", plain, verify.Ended, func(r *runLog) {
		r.entries = slices.Delete(r.entries, r.find("super", "finish"), r.find("super", "closed")+1)
	}},
	{"a finished run without the end of a child", children, verify.Ended, func(r *runLog) {
		for _, kind := range []string{"closed", "finish"} {
			i := r.find("super", kind)
			r.entries = slices.Delete(r.entries, i, i+1)
		}
	}},
	{"a run that stopped for another reason than its file says", plain, verify.Ended,
		func(r *runLog) { r.claim.Reason = "vetoed" }},
	{"a parked run without its question", unknown, verify.Ended,
		func(r *runLog) { r.item("super", "park").Kind = "unpark" }},
	{"a message of another agent", children, verify.Cause, func(r *runLog) {
		for i := range r.entries {
			if e := &r.entries[i]; e.To() == "root" && e.Items[0].Kind == "returned" && e.From.Agent() == mailbox.Super {
				e.From = "eval.root-1-0"
				return
			}
		}
		r.t.Fatal("no answer of a child")
	}},
}

// TestHonestRepeatsKeepTheRules: an append that was not acknowledged in time is sent again, so that a log may hold each
// entry of an activation twice, also much later. That breaks no rule.
func TestHonestRepeatsKeepTheRules(t *testing.T) {
	t.Parallel()
	for _, name := range []string{plain, children, canceled, unknown, "tool_retries_end"} {
		for i := range openRunLog(t, name).entries {
			r := openRunLog(t, name)
			e := r.entries[i]
			if e.From != e.to || e.Items[0].Kind == "closed" || e.Items[0].Kind == "resumed" {
				continue
			}
			at := r.findLast(e.to, e.Start)
			r.put(at, e)
			for _, f := range r.verify().Findings {
				t.Errorf("%s, entry %d again at %d: %s", name, i, at, f)
			}
		}
	}
}

// findLast returns the place after the last entry of an activation before the end of its log.
func (r *runLog) findLast(to mailbox.Address, start string) (at int) {
	for i, e := range r.entries {
		if e.to == to && e.Start == start && e.Items[0].Kind != "closed" {
			at = i + 1
		}
	}
	return at
}
