package verify_test

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// charge makes the agent root-1-1 one that represents an agent of another program, for which an amount is charged.
func (r *runLog) charge(nano int64, limits map[string]any) {
	r.t.Helper()
	r.edit("super", "opened", func(b map[string]any) {
		b["l"] = limits
		for _, d := range b["d"].([]any) {
			if d := d.(map[string]any); d["n"] == "critic" {
				d["fo"], d["ch"] = true, nano
			}
		}
	})
	r.edit("root-1-1", "submitted", func(b map[string]any) { b["t"].(map[string]any)["ch"] = nano })
}

// callForeign makes the call of root-1-1 one of the other program, and lets the agent report a number of calls.
func (r *runLog) callForeign(reported int) {
	r.t.Helper()
	r.edit("root-1-1", "replied", func(b map[string]any) {
		b["r"].(map[string]any)["m"].(map[string]any)["c"].([]any)[0].(map[string]any)["n"] = "delegate"
	})
	e := r.entries[r.find("root-1-1", "returned")]
	e.Items = []mailbox.Item{{Kind: "started", Body: r.body(map[string]any{"c": "1-0", "a": 1}),
		ID: fmt.Sprintf("%s!started.1-0.1.%d-%d.%s", e.to, e.Epoch.Lease, e.Epoch.Start, e.Start)}}
	r.put(r.find("root-1-1", "returned"), e)
	for i := range r.entries {
		if r.entries[i].From.Agent() == "root-1-1" {
			r.inEntry(i, "finish", func(b map[string]any) { b["fo"] = reported })
		}
	}
}

// limitSubtree puts a change of a subtree before the request for a closing turn of root-1-1.
func (r *runLog) limitSubtree(body map[string]any) {
	r.command(r.secondReserve(), "super", "subtree_limit_set", body)
}

const plenty = 1 << 40

var chargePlants = []violation{
	{"a charge of which the agent is told another amount", children, verify.Charged, func(r *runLog) {
		r.charge(7, map[string]any{"t": plenty})
		r.edit("root-1-1", "submitted", func(b map[string]any) { b["t"].(map[string]any)["ch"] = 5 })
	}},
	{"a charge above the limit", children, verify.Limit, func(r *runLog) {
		r.charge(1000, map[string]any{"t": plenty, "n": 100})
	}},
	{"a call of another program that is not reported", children, verify.Charged, func(r *runLog) {
		r.charge(7, map[string]any{"t": plenty})
		r.callForeign(0)
	}},
	{"a turn above the limit of a subtree", children, verify.Limit, func(r *runLog) {
		r.limitSubtree(map[string]any{"a": "root", "l": map[string]any{"t": 1}})
	}},
	{"a first turn above the limit of a subtree", children, verify.Limit, func(r *runLog) {
		r.command(r.find("root-1-1", "checkpoint")+1, "super", "subtree_limit_set",
			map[string]any{"a": "root-1-1", "l": map[string]any{"t": 1}})
	}},
	{"a turn above a limit of a subtree that a charge uses up", children, verify.Limit, func(r *runLog) {
		r.charge(1000, map[string]any{"t": plenty})
		r.callForeign(1)
		for i := range r.entries {
			r.inEntry(i, "reserve",
				func(b map[string]any) { b["a"].(map[string]any)["p"] = map[string]any{"k": true, "i": 1, "o": 1} })
		}
		r.edit("super", "opened", func(b map[string]any) {
			b["m"].(map[string]any)["p"] = map[string]any{"k": true, "i": 1, "o": 1}
		})
		r.limitSubtree(map[string]any{"a": "root", "l": map[string]any{"n": 999}})
	}},
	{"a turn of a frozen subtree", children, verify.Granted, func(r *runLog) {
		r.limitSubtree(map[string]any{"a": "root", "f": true})
	}},
	{"a closing turn of a frozen subtree", children, verify.Granted, func(r *runLog) {
		r.limitSubtree(map[string]any{"a": "root-1-1", "f": true})
	}},
}

// What people may set for subtrees, and charges that a run can pay, break no rule.
func TestHonestChargesAndSubtreesKeepTheRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *runLog)
		nano   int64 // settled
	}{
		"a charge that is booked": {func(r *runLog) {
			r.charge(7, map[string]any{"t": plenty, "n": 100})
			r.callForeign(1)
		}, 7},
		"a charge that is returned": {func(r *runLog) { r.charge(7, map[string]any{"t": plenty, "n": 100}) }, 0},
		"the limit of a subtree that has ended": {func(r *runLog) {
			r.limitSubtree(map[string]any{"a": "root-1-0", "l": map[string]any{"t": 1}, "f": true})
		}, 0},
		"a limit that is not reached": {func(r *runLog) {
			r.limitSubtree(map[string]any{"a": "root", "l": map[string]any{"t": plenty}})
		}, 0},
		"a closing turn beyond a limit that was lowered": {func(r *runLog) {
			r.limitSubtree(map[string]any{"a": "root-1-1", "l": map[string]any{"t": 1}})
		}, 0},
		"a freeze that is lifted before the next turn": {func(r *runLog) {
			at := r.secondReserve()
			r.limitSubtree(map[string]any{"a": "root", "f": true})
			r.entries[at].Items[0].ID = "freeze"
			r.command(at+1, "super", "subtree_limit_set", map[string]any{"a": "root", "f": false})
		}, 0},
		"a limit in money where no price is known, which is refused": {func(r *runLog) {
			r.edit("super", "opened", func(b map[string]any) { delete(b["m"].(map[string]any), "p") })
			r.limitSubtree(map[string]any{"a": "root", "l": map[string]any{"n": 1, "t": 1}})
		}, 0},
	} {
		r := openRunLog(t, children)
		c.change(r)
		report := r.verify()
		for _, f := range report.Findings {
			t.Errorf("%s: %s", name, f)
		}
		if report.Sums.Settled.Nano != c.nano || report.Sums.Held.Nano != 0 {
			t.Errorf("%s: %+v", name, report.Sums)
		}
	}
}

// A model of unknown price that a person has allowed is no error of its log.
func TestAnAllowedPriceDecodes(t *testing.T) {
	t.Parallel()
	r := openRunLog(t, plain)
	r.inReserve(func(q map[string]any) { q["p"] = map[string]any{"a": true} })
	for _, f := range r.verify().Findings {
		t.Error(f)
	}
}
