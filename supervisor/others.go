package supervisor

import "github.com/troupe-run/troupe/budget"

// OthersUse is what the other agents of a run had of its budget at a moment. It is only in the log of a
// run that was made of one agent of another run (docs/dump.md), before messages whose answers depend on
// the budget. So its supervisor answers them as the supervisor of the whole run did. The last one has
// what those agents have spent until then.
type OthersUse struct {
	Spent  budget.Amount `msgpack:"s,omitempty"`
	Held   budget.Amount `msgpack:"h,omitempty"` // Ahead included
	Ahead  budget.Amount `msgpack:"a,omitempty"`
	Kept   budget.Amount `msgpack:"k,omitempty"`
	Carved budget.Amount `msgpack:"c,omitempty"`
}

// Kind is the fact's word in logs.
func (OthersUse) Kind() string { return "others_use" }

// handleOthersUse replaces what the other agents have of the budget.
func handleOthersUse(s State, f OthersUse) (State, []Effect) {
	was := s.others
	for _, part := range []struct {
		total    *budget.Amount
		was, now *budget.Amount
	}{{&s.Pool.Spent, &was.Spent, &f.Spent}, {&s.Pool.Held, &was.Held, &f.Held}, {&s.Pool.Ahead, &was.Ahead, &f.Ahead},
		{&s.Pool.Kept, &was.Kept, &f.Kept}, {&s.Pool.Carved, &was.Carved, &f.Carved}} {
		*part.now = withinAmounts(*part.now)
		*part.total = part.total.Minus(*part.was).Plus(*part.now) //mutant:others-use-counted-twice
	}
	s.others = f
	return s.drainQueue() //mutant:others-wake-nobody
}

// othersMax is the most of anything that other agents can have: a file may hold any number, and sums must not overflow.
const othersMax = 1 << 52

func withinAmounts(a budget.Amount) budget.Amount {
	within := func(n int64) int64 { return max(0, min(n, othersMax)) }
	return budget.Amount{Tokens: within(a.Tokens), Nano: within(a.Nano), Calls: within(a.Calls)}
}
