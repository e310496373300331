package throttle

// applyAnswer ends a request, and applies what the answer reveals about the provider.
func (g Throttle) applyAnswer(e CallAnswered) (Throttle, []Effect) {
	f, known := g.inFlight.Get(e.Call)
	g.inFlight = g.inFlight.Delete(e.Call)
	if known && e.Used > 0 {
		g.tokens = g.tokens.refund(float64(f.tokens - e.Used))
	}
	g = g.applyReport(e.Report)
	onTrial := g.trialCall == e.Call && e.Call != ""
	if onTrial {
		g.trialCall = ""
	}
	switch {
	case !known: // an earlier process of the node sent it
		f.since = g.now
	case e.Outcome == OK:
		g.refusalStreak, g.failureStreak = 0, 0
		g = g.growWindow()
		if g.breaker == BreakerHalfOpen {
			return g.closeBreaker()
		}
		return g, nil
	}
	switch {
	case e.Outcome == Limited, e.Outcome == Overloaded && e.AfterMS > 0:
		return g.closeAfterRefusal(f, e)
	case e.Outcome == Overloaded, e.Outcome == Failed:
		g.failureStreak++
		if onTrial || g.failureStreak >= g.limits.Failures && g.breaker == BreakerClosed {
			return g.openBreaker(e.Outcome, f)
		}
	}
	return g, nil
}

// closeAfterRefusal closes the throttle for as long as the provider asks, or for longer with each
// refusal in a row. Requests that were in flight when the window was last cut belong to the
// same burst: their refusals lengthen the pause, but do not cut the window again.
func (g Throttle) closeAfterRefusal(f inFlightCall, e CallAnswered) (Throttle, []Effect) {
	if f.since > g.windowCutAt {
		g = g.narrowWindow()
		g.refusalStreak++
	}
	pause := max(min(max(e.AfterMS, 0), g.limits.PauseMax), backoff(g.limits.BackoffMin, g.limits.BackoffMax, g.refusalStreak-1)) //mutant:ignores-retry-after
	if g.breaker != BreakerClosed {
		// A refusal is an answer: the provider is up.
		g.breaker, g.trialCall, g.failureStreak, g.breakerOpenings, g.openedByProvider = BreakerClosed, "", 0, 0, false
	}
	return g.pauseAdmission(pause, e.Outcome, true)
}

// openBreaker opens the breaker.
func (g Throttle) openBreaker(why CallOutcome, f inFlightCall) (Throttle, []Effect) {
	g.breakerOpenings++
	g.breaker, g.trialCall, g.openedByProvider = BreakerOpen, "", why == Overloaded
	if f.since > g.windowCutAt {
		g = g.narrowWindow()
	}
	return g.pauseAdmission(backoff(g.limits.BreakerMin, g.limits.BreakerMax, g.breakerOpenings-1), why, why == Overloaded)
}

// closeBreaker closes the breaker: the provider answers again.
func (g Throttle) closeBreaker() (Throttle, []Effect) {
	told := g.openedByProvider
	g.breaker, g.trialCall, g.failureStreak, g.breakerOpenings, g.openedByProvider = BreakerClosed, "", 0, 0, false
	if !told {
		return g, nil
	}
	g.announcedUntil = g.now
	return g, []Effect{PublishNotice{g.makeNotice(OK)}}
}

// pauseAdmission admits no request for a time. It announces a pause that the provider itself
// asked for to the other nodes, unless they know of almost as long a pause.
func (g Throttle) pauseAdmission(ms int64, why CallOutcome, tell bool) (Throttle, []Effect) {
	end := g.now + ms
	if g.closedUntil < end { //mutant:shorter-pause-wins
		var late int64
		g.seed, late = nextJitter(g.seed, min(g.limits.JitterMax, ms/4+1))
		g.closedUntil, g.closedBy = end+late, why
	}
	if !tell || end < g.announcedUntil+announceAgainMS {
		return g, nil
	}
	g.announcedUntil = end
	return g, []Effect{PublishNotice{g.makeNotice(why)}}
}

// announceAgainMS is by how much a pause must grow before it is announced to other nodes again.
const announceAgainMS = 200

func (g Throttle) makeNotice(why CallOutcome) Notice {
	return Notice{PauseMS: max(0, g.announcedUntil-g.now), Why: why, Rates: g.rates.reported.Rates, Settings: g.rates.set}
}

// applyNotice applies a notice of another node. All nodes contribute to the load: this node cuts
// its own window too, once for each pause.
func (g Throttle) applyNotice(n Notice) Throttle {
	g = g.applyPeerRates(n)
	switch {
	case n.PauseMS > 0 && (n.Why == Limited || n.Why == Overloaded):
		if g.now >= g.closedUntil {
			g = g.narrowWindow()
		}
		ms := min(n.PauseMS, g.limits.PauseMax)
		g, _ = g.pauseAdmission(ms, n.Why, false)
		g.announcedUntil = max(g.announcedUntil, g.now+ms)
		if n.Why == Overloaded { // each node tries one request, and tells the others the outcome
			g.breaker, g.trialCall, g.openedByProvider, g.breakerOpenings = BreakerOpen, "", true, max(g.breakerOpenings, 1)
		}
	case n.PauseMS <= 0 && n.Why == OK && g.breaker != BreakerClosed && g.openedByProvider:
		g.breaker, g.trialCall, g.failureStreak, g.breakerOpenings, g.openedByProvider = BreakerClosed, "", 0, 0, false
		g.announcedUntil = g.now      // a later notice of rates must not close the others again
		if g.closedBy == Overloaded { // a rate limit is not lifted
			g.closedUntil = min(g.closedUntil, g.now)
		}
	}
	return g
}

// narrowWindow halves the window of requests in flight (the load that was refused is what was in
// flight); growWindow widens it again: fast up to where it was cut to, then by one request for
// each round of answers.
func (g Throttle) narrowWindow() Throttle {
	g.windowCutAt = g.now
	g.slowGrowthFrom = max(windowUnit, int64(g.inFlight.Len()+1)*windowUnit/2)
	g.window = min(g.window, g.slowGrowthFrom)
	return g
}

func (g Throttle) growWindow() Throttle {
	by := int64(windowUnit)
	if g.window >= g.slowGrowthFrom {
		by = windowUnit * windowUnit / g.window
	}
	g.window = min(g.window+max(1, by), int64(g.limits.InitialWindow)*windowUnit)
	return g
}

// closedFor is how much longer the throttle is closed; 0: it is open.
func (g Throttle) closedFor() int64 { return max(0, g.closedUntil-g.now) }

// canAdmit reports whether one more request may begin.
func (g Throttle) canAdmit(tokens int64) bool {
	switch {
	case g.now < g.closedUntil:
		return false
	case g.breaker != BreakerClosed && g.trialCall != "":
		return false
	case int64(g.inFlight.Len()+g.tickets.Len()+1)*windowUnit > g.window:
		return false
	}
	return g.refillTime(tokens) == 0
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

// nextJitter returns the next seed (splitmix64) and a random number from 0 to most.
func nextJitter(seed uint64, most int64) (uint64, int64) {
	seed += 0x9e3779b97f4a7c15
	z := seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return seed, int64((z ^ z>>31) % uint64(max(most, 0)+1))
}
