package sim

import "github.com/troupe-run/troupe/budget"

// bill is the most that a provider takes for a call by its published prices.
func bill(p budget.Price, prompt, out int64) budget.Amount {
	in, each := max(p.Input, p.CacheRead, p.CacheWrite), p.Output
	if p.Long.Above > 0 && prompt > p.Long.Above {
		in, each = max(p.Long.Input, p.Long.CacheRead, p.Long.CacheWrite), p.Long.Output
	}
	return budget.Amount{Tokens: prompt + out, Nano: prompt*in + out*each}
}

// bill charges a call of which nobody will hear: the provider counts it.
func (s *sim) bill(r *run) {
	s.ledger.bills[r.shell.actor.id] += promptTokens(r.request) + int64(s.IntN(int(r.request.MaxOutput)+1))
}
