package supervisor_test

import (
	"testing"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/supervisor"
)

// A run that works publishes what it has spent at each sixteenth of its limits, and not in its first seconds.
func TestTheSpendOfALiveRunIsPublishedInSteps(t *testing.T) {
	s := supervisor.State{Began: 1_000, Now: 60_000}
	s.Pool.Limit = budget.Limit{Tokens: 1_600, Nano: 160}
	key := s.SummaryKey()
	for _, c := range []struct {
		name    string
		now     int64
		spent   budget.Amount
		publish bool
	}{
		{"less than a step", 60_000, budget.Amount{Tokens: 99, Nano: 9}, false},
		{"a step of the tokens", 60_000, budget.Amount{Tokens: 100}, true},
		{"a step of the money", 60_000, budget.Amount{Nano: 10}, true},
		{"a run that has just begun", 5_999, budget.Amount{Tokens: 800, Nano: 80}, false},
	} {
		s.Now, s.Pool.Spent = c.now, c.spent
		if publish := s.SummaryKey() != key; publish != c.publish {
			t.Errorf("%s: published %t", c.name, publish)
		}
		if got := s.Summary(true).Spend.Budget.Used; got != c.spent.Tokens {
			t.Errorf("%s: the summary says %d tokens", c.name, got)
		}
	}
	s.Pool.Spent = budget.Amount{Tokens: 1_600}
	key = s.SummaryKey()
	if s.Pool.Spent.Tokens = 5_000; s.SummaryKey() != key {
		t.Error("beyond the limit it is published with each token")
	}
}
