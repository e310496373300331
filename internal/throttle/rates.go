package throttle

// Rates are requests and tokens a minute, of all nodes together; 0 is unknown.
type Rates struct {
	Requests int64 `json:"requests_per_minute,omitempty"`
	Tokens   int64 `json:"tokens_per_minute,omitempty"`
}

// RateReport is the report of a provider in an answer: the limits of the key in a minute, and the remaining amounts.
// The remaining amount of an unknown rate is meaningless.
type RateReport struct {
	Rates
	RequestsLeft, TokensLeft int64
}

// ratesMax bounds rates, so that no sum overflows.
const ratesMax = 1 << 40

// valid returns the rates that can be true; the others are unknown.
func (r Rates) valid() Rates {
	for _, n := range []*int64{&r.Requests, &r.Tokens} {
		if *n < 0 || *n > ratesMax {
			*n = 0
		}
	}
	return r
}

// stricter returns the lower rate of each kind.
func (r Rates) stricter(other Rates) Rates {
	return Rates{lowerRate(r.Requests, other.Requests), lowerRate(r.Tokens, other.Tokens)}
}

func lowerRate(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// over returns the rates of r, and where r has none those of the other.
func (r Rates) over(other Rates) Rates {
	if r.Requests == 0 {
		r.Requests = other.Requests
	}
	if r.Tokens == 0 {
		r.Tokens = other.Tokens
	}
	return r
}

// knownRates are the rates that a throttle knows. The strictest counts, so neither a provider nor
// another node can raise what a setting limits.
type knownRates struct {
	set          Rates        // by the settings of this node
	peerRequests expiringRate // the lowest setting of other nodes, without tokens
	peerTokens   expiringRate // the same, without requests
	reported     expiringRate // by the provider, to this node or to another

	publishSet    int64 // when the settings are published next
	told          Rates // the report that was last published or heard
	toldAt        int64
	changedReport bool // the other nodes do not know it
}

// expiringRate applies until a time; 0: there is none.
type expiringRate struct {
	Rates
	until int64
}

// reportInterval is the least time between two notices about what a provider reports: one that
// reports another rate with each answer does not flood the other nodes.
const reportInterval = 10_000

// applyRates lets the strictest of the known rates count.
func (g Throttle) applyRates() Throttle {
	r := g.rates.set.stricter(g.rates.peerRequests.Rates).stricter(g.rates.peerTokens.Rates).stricter(g.rates.reported.Rates) //mutant:setting-limits-the-report
	if r.Requests == g.requests.perMinute && r.Tokens == g.tokens.perMinute {
		return g
	}
	g.requests.perMinute, g.tokens.perMinute = r.Requests, r.Tokens
	return g.divideRates()
}

// expireRates drops rates that have applied long enough.
func (g Throttle) expireRates() Throttle {
	for _, r := range []*expiringRate{&g.rates.peerRequests, &g.rates.peerTokens, &g.rates.reported} {
		if r.until > 0 && g.now >= r.until {
			*r = expiringRate{}
		}
	}
	return g.applyRates()
}

// setRates applies the settings of this node.
func (g Throttle) setRates(r Rates) Throttle {
	if r = r.valid(); r != g.rates.set {
		g.rates.set, g.rates.publishSet = r, g.now
	}
	return g.applyRates()
}

// applyReport applies what the provider reports. What it does not report stays as it was.
func (g Throttle) applyReport(r RateReport) Throttle {
	r.Rates = r.valid()
	if r.Rates == (Rates{}) {
		return g
	}
	g.rates.reported = expiringRate{r.over(g.rates.reported.Rates), g.now + g.limits.ReportTTL}
	g = g.applyRates()
	if r.Requests > 0 {
		g.requests = g.requests.limitTo(r.RequestsLeft, g.nodes)
	}
	if r.Tokens > 0 {
		g.tokens = g.tokens.limitTo(r.TokensLeft, g.nodes)
	}
	g.rates.changedReport = g.rates.reported.Rates != g.rates.told || g.now >= g.rates.toldAt+g.limits.ReportTTL/2
	return g
}

// applyPeerRates applies the rates in a notice of another node: the newest report counts, and the
// lowest settings.
func (g Throttle) applyPeerRates(n Notice) Throttle {
	if r := n.Rates.valid(); r != (Rates{}) {
		g.rates.reported = expiringRate{r.over(g.rates.reported.Rates), g.now + g.limits.ReportTTL}
		g.rates.told, g.rates.toldAt, g.rates.changedReport = g.rates.reported.Rates, g.now, false
	}
	r, until := n.Settings.valid(), g.now+g.limits.SettingsTTL
	g.rates.peerRequests = g.rates.peerRequests.lowerTo(Rates{Requests: r.Requests}, until)
	g.rates.peerTokens = g.rates.peerTokens.lowerTo(Rates{Tokens: r.Tokens}, until)
	return g.applyRates()
}

// lowerTo returns the lower of two rates of one kind. A higher one changes nothing: the lower one ends at its own time,
// unless it is published again.
func (e expiringRate) lowerTo(r Rates, until int64) expiringRate {
	if r == (Rates{}) || r.stricter(e.Rates) != r {
		return e
	}
	return expiringRate{r, until}
}

// publishRates publishes what the other nodes need to know of rates, if it is time.
func (g Throttle) publishRates() (Throttle, []Effect) {
	report := g.rates.changedReport && (g.rates.told == (Rates{}) || g.now >= g.rates.toldAt+reportInterval)
	settings := g.rates.set != (Rates{}) && g.now >= g.rates.publishSet
	if !report && !settings {
		return g, nil
	}
	if report {
		g.rates.told, g.rates.toldAt, g.rates.changedReport = g.rates.reported.Rates, g.now, false
	}
	if settings {
		g.rates.publishSet = g.now + g.limits.SettingsTTL/2
	}
	why := CallOutcome("")
	if g.announcedUntil > g.now {
		why = g.closedReason()
	}
	return g, []Effect{PublishNotice{g.makeNotice(why)}}
}

// nextRateTick is when the rates change with time alone; 0: they do not.
func (g Throttle) nextRateTick() (at int64) {
	for _, t := range []int64{g.rates.peerRequests.until, g.rates.peerTokens.until, g.rates.reported.until} {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	if g.rates.set != (Rates{}) && (at == 0 || g.rates.publishSet < at) {
		at = g.rates.publishSet
	}
	return at
}
