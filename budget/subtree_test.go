package budget_test

import (
	"testing"

	"github.com/troupe-run/troupe/budget"
)

// The limit of a subtree holds for what agents of other programs cost, whether it is set before or after they are called.
func TestChargesCountInTheirSubtree(t *testing.T) {
	const boss, member = "root-1", "root-1-0"
	start := func() budget.Pool {
		p := budget.Pool{Limit: budget.Limit{Tokens: 1_000, Nano: 1_000}}
		for _, who := range []string{"root", boss, member, "root-10"} {
			var ok bool
			if p, ok = p.Admit(who, budget.Limit{}, budget.AttemptRequest{Price: budget.Price{Known: true}}); !ok {
				t.Fatalf("%s is not admitted", who)
			}
		}
		return p
	}
	held := func(p budget.Pool, who string) int64 { return p.Account(who).Subtree.Used.Nano }

	p := start().SetSubtree(boss, budget.Limit{Nano: 100}, false)
	p, fits := p.HoldMoney(boss, member+"/charge", 60)
	if !fits || held(p, boss) != 60 {
		t.Errorf("a charge within the limit: fits %t, the subtree holds %d", fits, held(p, boss))
	}
	if _, fits = p.HoldMoney(boss, "root-1-1/charge", 60); fits {
		t.Error("a second charge goes beyond the limit of the subtree")
	}

	p = start()
	for who, nano := range map[string]int64{member + "/charge": 7, "root-10/charge": 90} {
		if p, fits = p.HoldMoney("root", who, nano); !fits {
			t.Fatalf("%s does not fit", who)
		}
	}
	for _, who := range []string{boss, member} { // of an agent, and of the member that stands for the other program
		if got := held(p.SetSubtree(who, budget.Limit{Nano: 100}, false), who); got != 7 {
			t.Errorf("a limit of %s that is set later counts %d", who, got)
		}
	}
}
