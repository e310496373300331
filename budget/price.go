package budget

import "github.com/troupe-run/troupe/model"

// Price is what a token costs in billionths of a US dollar. Known is false for
// a model without a price: its cost is unknown, never zero.
type Price struct {
	Known      bool  `msgpack:"k,omitempty" json:"known"`
	Input      int64 `msgpack:"i,omitempty" json:"input"`
	Output     int64 `msgpack:"o,omitempty" json:"output"`
	CacheRead  int64 `msgpack:"r,omitempty" json:"cache_read"`
	CacheWrite int64 `msgpack:"w,omitempty" json:"cache_write"`
	// Long is the tier of calls with a long prompt.
	Long Tier `msgpack:"l,omitempty" json:"long,omitzero"`
	// Longest is the tier of calls with an even longer prompt; it requires Long and is above it.
	Longest Tier `msgpack:"m,omitempty" json:"longest,omitzero"`
	// Allowed: the price is unknown, and a person has allowed the model by name,
	// although a limit in money cannot hold for it.
	Allowed bool `msgpack:"a,omitempty" json:"allowed,omitempty"`
	// Estimated: it is the list price of a model that is called through a gateway, which may bill another one.
	Estimated bool `msgpack:"e,omitempty" json:"estimated,omitempty"`
}

// Tier is the price of every token of a call whose prompt has more than Above
// tokens. Above is 0 if there is no such tier.
type Tier struct {
	Above      int64 `msgpack:"a,omitempty" json:"above"`
	Input      int64 `msgpack:"i,omitempty" json:"input"`
	Output     int64 `msgpack:"o,omitempty" json:"output"`
	CacheRead  int64 `msgpack:"r,omitempty" json:"cache_read"`
	CacheWrite int64 `msgpack:"w,omitempty" json:"cache_write"`
}

// Covered reports whether a limit in money permits calls of a model: its price is
// known, or a person has allowed the model without one.
func (p Price) Covered() bool { return p.Known || p.Allowed }

// Bound is the most that input and output tokens can cost: every input token
// at the dearest rate that may apply to it.
func (p Price) Bound(input, output int64) Amount {
	p = p.upTo(input)
	return Amount{Tokens: input + output, Nano: input*p.dearestRate() + output*p.Output}
}

func (p Price) dearestRate() int64 { return max(p.Input, p.CacheWrite, p.CacheRead) }

// upTo returns one rate for each kind of token that no call with a prompt of up to
// that many tokens exceeds.
func (p Price) upTo(prompt int64) Price {
	flat := p
	flat.Long, flat.Longest = Tier{}, Tier{}
	for _, t := range p.sortedTiers() {
		if t.isBegun(prompt) {
			flat = flat.Dearer(p.priceOf(t)) //mutant:long-prompt-reserved-as-short
		}
	}
	return flat
}

// sortedTiers are those of longer prompts, the shorter first.
func (p Price) sortedTiers() [2]Tier { return [...]Tier{p.Long, p.Longest} }

func (t Tier) isBegun(prompt int64) bool { return t.Above > 0 && prompt > t.Above }

// priceOf is the price of a call with a prompt of a tier.
func (p Price) priceOf(t Tier) Price {
	return Price{Known: p.Known, Allowed: p.Allowed, Input: t.Input, Output: t.Output, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite}
}

// Dearer is a price that is not below either of two.
func (p Price) Dearer(q Price) Price {
	dear := Price{Known: p.Known && q.Known, Allowed: p.Covered() && q.Covered() && (p.Allowed || q.Allowed), Input: max(p.Input, q.Input), Output: max(p.Output, q.Output),
		CacheRead: max(p.CacheRead, q.CacheRead), CacheWrite: max(p.CacheWrite, q.CacheWrite)}
	above := max(p.Long.Above, q.Long.Above)
	if above == 0 {
		return dear
	}
	for _, tier := range []Tier{p.Long, q.Long} {
		if tier.Above > 0 {
			above = min(above, tier.Above)
		}
	}
	l := p.upTo(Unlimited).Dearer(q.upTo(Unlimited))
	dear.Long = Tier{Above: above, Input: l.Input, Output: l.Output, CacheRead: l.CacheRead, CacheWrite: l.CacheWrite}
	return dear
}

// Cost is what a reported usage costs.
func (p Price) Cost(u model.Usage) Amount {
	for _, t := range p.sortedTiers() {
		if t.isBegun(u.Prompt()) {
			p = p.priceOf(t)
		}
	}
	return Amount{
		Tokens: u.Total(),
		Nano:   u.Input*p.Input + u.Output*p.Output + u.CacheRead*p.CacheRead + u.CacheCreation*p.CacheWrite,
	}
}

// isSane: no rate is negative or beyond anything real, and tiers follow each other.
func (p Price) isSane() bool {
	for _, q := range [...]Price{p, p.priceOf(p.Long), p.priceOf(p.Longest)} {
		for _, n := range [...]int64{q.Input, q.Output, q.CacheRead, q.CacheWrite} {
			if n < 0 || n > requestNanoMax {
				return false
			}
		}
	}
	return p.Long.Above >= 0 && (p.Longest == Tier{} || p.Long.Above > 0 && p.Longest.Above > p.Long.Above)
}
