package verify

// isCovered reports whether a limit in money can be kept at the price.
func (p priceBody) isCovered() bool { return p.Known || p.Allowed }

// dearest is the most that an input token costs.
func (t rateBody) dearest() int64 { return max(t.Input, t.CacheRead, t.CacheCreation) }

func (t tierBody) isBegun(prompt int64) bool { return t.Above > 0 && prompt > t.Above }

// bound is the most that a call with that many tokens can cost: every input token at the dearest rate that may apply.
func (p priceBody) bound(input, output int64) Amount {
	in, out := p.dearest(), p.Output
	for _, t := range []tierBody{p.Long, p.Longest} {
		if t.isBegun(input) {
			in, out = max(in, t.dearest()), max(out, t.Output)
		}
	}
	return Amount{Tokens: input + output, Nano: input*in + output*out}
}

// cost is what a call costs, by its usage.
func (p priceBody) cost(u usageBody) int64 {
	rate := p.rateBody
	for _, t := range []tierBody{p.Long, p.Longest} {
		if t.isBegun(u.Input + u.CacheRead + u.CacheCreation) {
			rate = t.rateBody
		}
	}
	return u.Input*rate.Input + u.Output*rate.Output + u.CacheRead*rate.CacheRead + u.CacheCreation*rate.CacheCreation
}

// costs are what a call costs at each model that the agent may have called.
func (l *agentLog) costs(u usageBody) (costs []int64) {
	models := append([]modelBody{l.task.Task.Model}, l.task.Task.LoopOptions.Fallbacks...)
	if m := l.task.Task.LoopOptions.Context.Model; m != nil {
		models = append(models, *m)
	}
	for _, set := range l.models {
		models = append(models, set.Model)
		if set.Summaries != nil {
			models = append(models, *set.Summaries)
		}
	}
	for _, m := range models {
		costs = append(costs, m.Price.cost(u))
	}
	return costs
}
