package verify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/verify"
)

// budgeted is a run that asks for each of its turns, and ends by its limit.
const budgeted = "token_budget"

// opened edits the limits with which a run was opened.
func (r *runLog) opened(limits map[string]any) {
	r.edit("super", "opened", func(b map[string]any) { b["l"] = limits })
}

// setLimit puts a change of the limits before the second request of an agent.
func (r *runLog) setLimit(body map[string]any) {
	r.command(r.secondReserve(), "super", "limit_set", body)
}

// secondReserve returns the place of the second request for a reservation.
func (r *runLog) secondReserve() int {
	r.t.Helper()
	first := r.find("super", "reserve")
	for i := first + 1; i < len(r.entries); i++ {
		if e := r.entries[i]; e.To() == "super" && e.Items[len(e.Items)-1].Kind == "reserve" {
			return i
		}
	}
	r.t.Fatal("no second request")
	return 0
}

// bill makes the first answer, and its settlement, report that many tokens.
func (r *runLog) bill(tokens int64) {
	r.edit("root", "replied", func(b map[string]any) {
		b["r"].(map[string]any)["u"] = map[string]any{"i": tokens}
	})
	r.edit("super", "settle", func(b map[string]any) {
		used, _ := b["u"].(map[string]any)
		b["u"] = map[string]any{"t": tokens, "c": used["c"]}
	})
}

// inReserve edits the first request for a reservation.
func (r *runLog) inReserve(change func(request map[string]any)) {
	r.edit("super", "reserve", func(b map[string]any) { change(b["a"].(map[string]any)) })
}

var sumPlants = []violation{
	{"settled and reserved tokens above the limit", children, verify.Limit, func(r *runLog) {
		r.opened(map[string]any{"t": r.verify().Sums.Settled.Tokens})
	}},
	{"a reservation of more money than the limit", plain, verify.Limit, func(r *runLog) {
		r.inReserve(func(q map[string]any) { q["p"] = map[string]any{"k": true, "i": 1000, "o": 5000} })
		r.opened(map[string]any{"n": 100})
	}},
	{"a reservation of more money than the dearer tier allows", plain, verify.Limit, func(r *runLog) {
		r.inReserve(func(q map[string]any) {
			q["p"] = map[string]any{"k": true, "i": 1, "o": 1, "l": map[string]any{"a": 1, "i": 1000, "o": 1000}}
		})
		r.opened(map[string]any{"n": 5000})
	}},
	{"more tool calls than the limit", plain, verify.Limit, func(r *runLog) { r.opened(map[string]any{"c": 1}) }},
	{"a turn above a limit that was lowered", budgeted, verify.Limit,
		func(r *runLog) { r.setLimit(map[string]any{"l": map[string]any{"t": 1}, "p": true}) }},
	{"a turn above a limit in money that was set", budgeted, verify.Limit, func(r *runLog) {
		r.edit("root", "submitted", func(b map[string]any) {
			b["t"].(map[string]any)["m"].(map[string]any)["p"] = map[string]any{"k": true, "i": 7, "o": 7}
		})
		for i := range r.entries {
			r.inEntry(i, "reserve",
				func(b map[string]any) { b["a"].(map[string]any)["p"] = map[string]any{"k": true, "i": 7, "o": 7} })
		}
		r.setLimit(map[string]any{"l": map[string]any{"n": 7}, "p": true})
	}},
	{"a turn above what other agents have left", budgeted, verify.Limit, func(r *runLog) {
		r.command(r.secondReserve(), "super", "others_use", map[string]any{"s": map[string]any{"t": 1 << 40}})
	}},
	{"a turn above what other agents hold", budgeted, verify.Limit, func(r *runLog) {
		r.command(r.secondReserve(), "super", "others_use", map[string]any{"h": map[string]any{"t": 1 << 40}})
	}},
	{"a turn above the own limit of the agent", plain, verify.Limit, func(r *runLog) {
		r.root(func(task map[string]any) { task["l"].(map[string]any)["k"] = 5 })
	}},
	{"tool calls above the own limit of the agent", plain, verify.Limit, func(r *runLog) {
		r.root(func(task map[string]any) { task["l"].(map[string]any)["c"] = 1 })
	}},
	{"an allowance above the limit", plain, verify.Limit, func(r *runLog) {
		r.edit("root", "granted", func(b map[string]any) { b["h"] = map[string]any{"r": map[string]any{"t": 1 << 40}} })
	}},
	{"an attempt that costs more than is left of the allowance", budgeted, verify.Limit, func(r *runLog) {
		for i := range r.entries {
			r.inEntry(i, "settle", func(b map[string]any) {
				if b["w"] != nil {
					b["k"] = map[string]any{"t": 1 << 40}
				}
			})
		}
	}},
	{"a grant that nobody asked for", plain, verify.Reserved,
		func(r *runLog) { r.item("super", "reserve").Kind = "unpark" }},
	{"a grant of a reservation that is settled", plain, verify.Reserved, func(r *runLog) {
		r.item("root", "granted").N = r.placeOf(r.find("super", "finish"))
	}},
	{"a grant of more output than was asked for", plain, verify.Granted, func(r *runLog) {
		r.edit("root", "granted", func(b map[string]any) { b["o"] = 1 << 20 })
	}},
	{"a grant of more tool calls than were asked for", plain, verify.Granted, func(r *runLog) {
		r.edit("root", "granted", func(b map[string]any) { b["c"] = 1 << 20 })
	}},
	{"a closing turn with tool calls", budgeted, verify.Granted, func(r *runLog) {
		r.edit("root", "granted", func(b map[string]any) { b["f"], b["c"] = true, 5 })
	}},
	{"a turn of a frozen budget", budgeted, verify.Granted, func(r *runLog) { r.setLimit(map[string]any{"f": true}) }},
	{"a turn after a provider billed more than was reserved", budgeted, verify.Granted, func(r *runLog) {
		r.opened(map[string]any{"t": 1 << 40})
		r.bill(1 << 30)
	}},
	{"a settlement of more tool calls than were granted", plain, verify.SettledAmount, func(r *runLog) {
		r.edit("super", "settle", func(b map[string]any) { b["u"].(map[string]any)["c"] = 999 })
	}},
	{"a settlement of other money than its reply costs", plain, verify.SettledAmount, func(r *runLog) {
		r.edit("super", "settle", func(b map[string]any) { b["u"].(map[string]any)["n"] = 12345 })
	}},
}

// TestHonestSumsKeepTheRules: changes of the budget that a run may have break no rule, and the report says what came of
// them.
func TestHonestSumsKeepTheRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    string
		change func(r *runLog)
		want   func(s verify.Sums) bool
	}{
		"a limit that is raised before the first turn": {plain, func(r *runLog) {
			r.opened(map[string]any{"t": 1})
			r.command(r.find("super", "reserve"), "super", "limit_set",
				map[string]any{"l": map[string]any{"t": 1 << 30}, "p": true})
		}, func(s verify.Sums) bool { return s.Limit.Tokens == 1<<30 }},
		"a limit of one kind that leaves the others": {plain, func(r *runLog) {
			r.opened(map[string]any{"t": 1 << 30, "c": 500})
			r.setLast("limit_set", map[string]any{"l": map[string]any{"c": 600}, "p": true})
		}, func(s verify.Sums) bool { return s.Limit.Tokens == 1<<30 && s.Limit.Calls == 600 }},
		"limits that are replaced": {plain, func(r *runLog) {
			r.setLast("limit_set", map[string]any{"l": map[string]any{"c": 600}})
		}, func(s verify.Sums) bool { return s.Limit.Tokens == 0 && s.Limit.Calls == 600 }},
		"a change of the time alone": {budgeted, func(r *runLog) {
			r.setLimit(map[string]any{"ts": 60_000, "th": 70_000, "p": true})
		}, func(s verify.Sums) bool { return s.Limit.Tokens == 5000 }},
		"a freeze that is lifted before the next turn": {budgeted, func(r *runLog) {
			at := r.secondReserve()
			r.command(at, "super", "limit_set", map[string]any{"f": true})
			r.entries[at].Items[0].ID = "freeze"
			r.command(at+1, "super", "limit_set", map[string]any{"l": map[string]any{"t": 5000}, "p": true})
		}, func(s verify.Sums) bool { return s.Limit.Tokens == 5000 }},
		"a limit that is lowered below what is settled, at the end": {plain, func(r *runLog) {
			r.setLast("limit_set", map[string]any{"l": map[string]any{"t": 1}, "p": true})
		}, func(s verify.Sums) bool { return s.Limit.Tokens == 1 && s.Settled.Tokens > 1 }},
		"what other agents have spent": {plain, func(r *runLog) {
			r.command(r.find("super", "reserve"), "super", "others_use", map[string]any{"s": map[string]any{"t": 77}})
		}, func(s verify.Sums) bool { return s.Settled.Tokens > 77 }},
	} {
		r := openRunLog(t, c.run)
		c.change(r)
		report := r.verify()
		for _, f := range report.Findings {
			t.Errorf("%s: %s", name, f)
		}
		if !c.want(report.Sums) {
			t.Errorf("%s: %+v", name, report.Sums)
		}
	}
}

// setLast puts a command before the end of the log of the run.
func (r *runLog) setLast(kind string, body map[string]any) {
	r.command(r.find("super", "finish"), "super", kind, body)
}

// TestAnOverrunIsRecorded: a provider may bill more than was reserved. That breaks no rule, and the certificate names
// it.
func TestAnOverrunIsRecorded(t *testing.T) {
	t.Parallel()
	r := openRunLog(t, plain)
	r.bill(1 << 30)
	report := r.verify()
	for _, f := range report.Findings {
		t.Error(f)
	}
	facts := strings.Join(report.Certificate.Facts, "\n")
	if report.Sums.Overrun.Tokens <= 0 || !strings.Contains(facts, "tokens more than was reserved (first in entry") {
		t.Errorf("%+v\n%s", report.Sums, facts)
	}
}

// TestTheCertificateOfAForkNamesItsLimit: the limit of a fork is the one with which it goes on.
func TestTheCertificateOfAForkNamesItsLimit(t *testing.T) {
	t.Parallel()
	r := openRunLog(t, plain)
	r.edit("super", "opened", func(b map[string]any) { b["fo"] = "other@root:1" })
	if facts := strings.Join(r.verify().Certificate.Facts, "\n"); !strings.Contains(facts,
		"a fork of other@root:1, its limit is") || !strings.Contains(facts, "(as its original began)") {
		t.Error(facts)
	}
	r.setLast("limit_set", map[string]any{"l": map[string]any{"t": 1 << 30}, "p": true, "b": "fork"})
	report := r.verify()
	facts := strings.Join(report.Certificate.Facts, "\n")
	if report.TokenLimit != 1<<30 || !strings.Contains(facts, "its limit is 1073741824 tokens") || !strings.Contains(facts,
		"(set by fork in entry ") {
		t.Errorf("%d\n%s", report.TokenLimit, facts)
	}
}

// inEntry edits the items of a kind in an entry.
func (r *runLog) inEntry(i int, kind string, change func(body map[string]any)) {
	e := &r.entries[i]
	e.Items = slices.Clone(e.Items)
	for k := range e.Items {
		if e.Items[k].Kind == kind {
			e.Items[k].Body = r.changed(e.Items[k].Body, change)
		}
	}
}

// placeOf returns the number of an entry within its log.
func (r *runLog) placeOf(i int) (place uint64) {
	for _, e := range r.entries[:i+1] {
		if e.to == r.entries[i].to {
			place++
		}
	}
	return place
}
