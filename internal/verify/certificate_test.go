package verify_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// moveRoot moves the root to a node pool: its address names the pool.
func (r *runLog) moveRoot(pool string) {
	root := r.entries[r.find("root", "resumed")].to
	for i := range r.entries {
		e := &r.entries[i]
		if e.From == root {
			e.From = root.In(pool)
		}
		if e.to != root {
			continue
		}
		e.to = root.In(pool)
		e.Items = slices.Clone(e.Items)
		for k, item := range e.Items {
			if rest, own := strings.CutPrefix(item.ID, string(root)+"!"); own {
				e.Items[k].ID = string(e.to) + "!" + rest
			}
		}
	}
}

// TestCertificateOfARootInANodePool: the certificate has the figures and the answer to the stop, wherever the root
// works.
func TestCertificateOfARootInANodePool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ run, rule, fact string }{
		{budgeted, "token_budget", "the limit of the run was 5000 tokens"},
		{plain, "its own proposal, which no rule vetoed", "the supervisor answered stop_allowed (entry 9 of eval.root@gpu)"},
	} {
		r := openRunLog(t, c.run)
		r.moveRoot("gpu")
		report := r.verify()
		for _, f := range report.Findings {
			t.Errorf("%s: %s", c.run, f)
		}
		facts := strings.Join(report.Certificate.Facts, "\n")
		if report.Certificate.Rule != c.rule || !strings.Contains(facts, c.fact) {
			t.Errorf("%s: stopped by %q, and the certificate lacks %q:\n%s", c.run, report.Certificate.Rule, c.fact, facts)
		}
	}
}

// TestCertificateOfACancelDuringAClosingTurn: the supervisor had granted only a closing turn for the budget, and then
// the run was canceled. The cancel is the rule by which it stopped.
func TestCertificateOfACancelDuringAClosingTurn(t *testing.T) {
	t.Parallel()
	for reason, rule := range map[string]string{"aborted_streaming": "cancel", "canceled": "cancel",
		"timeout": "limit of working time", "token_budget": "token_budget"} {
		r := openRunLog(t, budgeted)
		r.edit("super", "finish", func(b map[string]any) { b["o"].(map[string]any)["r"] = reason })
		r.claim.Reason = reason
		got := r.verify().Certificate
		facts := strings.Join(got.Facts, "\n")
		if got.Reason != reason || got.Rule != rule || strings.Contains(facts,
			"granted only a closing turn") != (rule == "token_budget") {
			t.Errorf("%s: stopped as %q by %q:\n%s", reason, got.Reason, got.Rule, facts)
		}
	}
}

// TestReportsOfOneInputAreEqual: findings have one order, also those of one entry.
func TestReportsOfOneInputAreEqual(t *testing.T) {
	t.Parallel()
	r := openRunLog(t, budgeted)
	for i := range r.entries {
		r.inEntry(i, "settle", func(b map[string]any) { b["l"] = 1000 + i })
	}
	first := r.verify()
	unsettled := func(f verify.Finding) bool { return f.Rule == verify.Settled && f.Log.Agent() == mailbox.Super }
	if n := len(slices.DeleteFunc(slices.Clone(first.Findings),
		func(f verify.Finding) bool { return !unsettled(f) })); n < 2 {
		t.Fatalf("%d reservations that were never settled: %v", n, first.Findings)
	}
	for range 50 {
		if again := r.verify(); !reflect.DeepEqual(first, again) {
			t.Fatalf("%v\n%v", first.Findings, again.Findings)
		}
	}
}
