package sim

import (
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

// maximumBill is the most that a provider takes for a call by its published prices.
func maximumBill(p budget.Price, prompt, out int64) budget.Amount {
	in, each := max(p.Input, p.CacheRead, p.CacheWrite), p.Output
	if p.Long.Above > 0 && prompt > p.Long.Above {
		in, each = max(p.Long.Input, p.Long.CacheRead, p.Long.CacheWrite), p.Long.Output
	}
	return budget.Amount{Tokens: prompt + out, Nano: prompt*in + out*each}
}

// promptTokens is how the provider counts a prompt, messageTokens one message.
func promptTokens(r model.Request) int64 {
	n := int64(4 + (len(r.System)+len(r.Dynamic))/4)
	for _, t := range r.Tools {
		n += int64(4 + (len(t.Name)+len(t.Schema))/4)
	}
	for _, m := range r.Messages {
		n += messageTokens(m)
	}
	return n
}

func messageTokens(m model.Message) int64 {
	n := 2 + len(m.Text)/4
	for _, c := range m.Calls {
		n += 2 + (len(c.Name)+len(c.Args))/4
	}
	for _, r := range m.Results {
		n += 2 + len(r.Text)/4
	}
	for _, o := range m.Opaque {
		n += 2 + len(o.Data)/4
	}
	return int64(n)
}
