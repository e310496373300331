package throttle

// answered ends a request, and applies what the answer reveals about the provider.
func (g Gate) answered(e Answered) (Gate, []Effect) {
	f, known := g.flying.Get(e.Call)
	g.flying = g.flying.Delete(e.Call)
	if known && e.Used > 0 {
		g.tokens = g.tokens.give(float64(f.tokens - e.Used))
	}
	onTrial := g.trial == e.Call && e.Call != ""
	if onTrial {
		g.trial = ""
	}
	switch {
	case !known: // an earlier process of the node sent it
		f.since = g.now
	case e.As == OK:
		g.streak, g.fails = 0, 0
		g = g.grown()
		if g.breaker == Half {
			return g.recovered()
		}
		return g, nil
	}
	switch {
	case e.As == Limited, e.As == Overloaded && e.AfterMS > 0:
		return g.refused(f, e)
	case e.As == Overloaded, e.As == Failed:
		g.fails++
		if onTrial || g.fails >= g.limits.Failures && g.breaker == Closed {
			return g.broken(e.As, f)
		}
	}
	return g, nil
}

// refused closes the throttle for as long as the provider asks, or for longer with each
// refusal in a row. Requests that were in flight when the window was last cut belong to the
// same burst: their refusals lengthen the pause, but do not cut the window again.
func (g Gate) refused(f flight, e Answered) (Gate, []Effect) {
	if f.since > g.cut {
		g = g.narrowed()
		g.streak++
	}
	pause := max(min(max(e.AfterMS, 0), g.limits.PauseMax), backoff(g.limits.BackoffMin, g.limits.BackoffMax, g.streak-1)) //mutant:ignores-retry-after
	if g.breaker != Closed {
		// A refusal is an answer: the provider is up.
		g.breaker, g.trial, g.fails, g.opened, g.ours = Closed, "", 0, 0, false
	}
	return g.close(pause, e.As, true)
}

// broken opens the breaker.
func (g Gate) broken(why Verdict, f flight) (Gate, []Effect) {
	g.opened++
	g.breaker, g.trial, g.ours = Open, "", why == Overloaded
	if f.since > g.cut {
		g = g.narrowed()
	}
	return g.close(backoff(g.limits.BreakerMin, g.limits.BreakerMax, g.opened-1), why, why == Overloaded)
}

// recovered closes the breaker: the provider answers again.
func (g Gate) recovered() (Gate, []Effect) {
	told := g.ours
	g.breaker, g.trial, g.fails, g.opened, g.ours = Closed, "", 0, 0, false
	if !told {
		return g, nil
	}
	g.said = g.now
	return g, []Effect{Tell{g.notice(OK)}}
}

// close admits no request for a time. The other nodes are told of a pause that the provider
// itself asked for, unless they know of almost as long a pause.
func (g Gate) close(ms int64, why Verdict, tell bool) (Gate, []Effect) {
	end := g.now + ms
	if g.until < end { //mutant:shorter-pause-wins
		var late int64
		g.seed, late = jitter(g.seed, min(g.limits.JitterMax, ms/4+1))
		g.until, g.why = end+late, why
	}
	if !tell || end < g.said+sayAgainMS {
		return g, nil
	}
	g.said = end
	return g, []Effect{Tell{g.notice(why)}}
}

// sayAgainMS is by how much a pause must grow before other nodes are told again.
const sayAgainMS = 200

func (g Gate) notice(why Verdict) Notice {
	return Notice{PauseMS: max(0, g.said-g.now), Why: why, Requests: g.requests.minute, Tokens: g.tokens.minute}
}

// heard applies a notice of another node. All nodes contribute to the load: this node cuts
// its own window too, once for each pause.
func (g Gate) heard(n Notice) Gate {
	if n.Requests > 0 || n.Tokens > 0 {
		g.requests.minute, g.tokens.minute, g.lent = max(0, n.Requests), max(0, n.Tokens), g.now+g.limits.Forget
		g = g.shared()
	}
	switch {
	case n.PauseMS > 0 && (n.Why == Limited || n.Why == Overloaded):
		if g.now >= g.until {
			g = g.narrowed()
		}
		ms := min(n.PauseMS, g.limits.PauseMax)
		g, _ = g.close(ms, n.Why, false)
		g.said = max(g.said, g.now+ms)
		if n.Why == Overloaded { // each node tries one request, and tells the others the outcome
			g.breaker, g.trial, g.ours, g.opened = Open, "", true, max(g.opened, 1)
		}
	case n.PauseMS <= 0 && n.Why == OK && g.breaker != Closed && g.ours:
		g.breaker, g.trial, g.fails, g.opened, g.ours = Closed, "", 0, 0, false
		if g.why == Overloaded { // a rate limit is not lifted
			g.until = min(g.until, g.now)
		}
	}
	return g
}

// ruled sets what the key allows in a minute.
func (g Gate) ruled(e Ruled) (Gate, []Effect) {
	if e.Requests < 0 || e.Tokens < 0 {
		return g, nil
	}
	g.own, g.lent = e, 0
	if e.Requests == g.requests.minute && e.Tokens == g.tokens.minute {
		return g, nil
	}
	g.requests.minute, g.tokens.minute = e.Requests, e.Tokens
	g = g.shared()
	why := OK
	if g.said > g.now {
		why = g.reason()
	}
	return g, []Effect{Tell{g.notice(why)}}
}

// narrowed halves the window of requests in flight (the load that was refused is what was in
// flight); grown widens it again: fast up to where it was cut to, then by one request for
// each round of answers.
func (g Gate) narrowed() Gate {
	g.cut = g.now
	g.knee = max(milli, int64(g.flying.Len()+1)*milli/2)
	g.window = min(g.window, g.knee)
	return g
}

func (g Gate) grown() Gate {
	by := int64(milli)
	if g.window >= g.knee {
		by = milli * milli / g.window
	}
	g.window = min(g.window+max(1, by), int64(g.limits.Window)*milli)
	return g
}

// closedFor is how much longer the throttle is closed; 0: it is open.
func (g Gate) closedFor() int64 { return max(0, g.until-g.now) }

// open reports whether one more request may begin.
func (g Gate) open(tokens int64) bool {
	switch {
	case g.now < g.until:
		return false
	case g.breaker != Closed && g.trial != "":
		return false
	case int64(g.flying.Len()+g.tickets.Len()+1)*milli > g.window:
		return false
	}
	return g.requests.has(1) && g.tokens.has(float64(tokens))
}

// backoff doubles a pause from least to most.
func backoff(least, most int64, times int) int64 {
	for range min(max(times, 0), 32) {
		if least >= most {
			break
		}
		least *= 2
	}
	return min(least, most)
}

// jitter returns the next seed (splitmix64) and a random number from 0 to most.
func jitter(seed uint64, most int64) (uint64, int64) {
	seed += 0x9e3779b97f4a7c15
	z := seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return seed, int64((z ^ z>>31) % uint64(max(most, 0)+1))
}
