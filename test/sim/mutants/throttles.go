package main

// ofGates lists mutants of the rules of the rate limiters of models.
var ofGates = []Mutant{
	{"ignores-retry-after", "G6: a pause is as long as the provider asks",
		own(Replace(`pause := backoff(g.limits.BackoffMin, g.limits.BackoffMax, g.refusalStreak-1)`))},
	{"shorter-pause-wins", "G6: a later refusal does not shorten the pause", own(ReplaceTerm(1, 1, `g.closedUntil != end`))},
	{"rate-is-not-kept", "G6: no more requests in a minute than the rate", []Edit{{"rate-is-kept", Always}}},
	{"burst-beyond-the-rate", "G6: a burst is part of the rate", []Edit{{"burst-is-part-of-the-rate", Replace(`b.refillPerMS = share / minuteMS`)}}},
	{"report-raises-the-setting", "G6: a provider's report raises no setting",
		[]Edit{{"setting-limits-the-report", Replace(`r := g.rates.reported.over(g.rates.set.stricter(g.rates.peerRequests.Rates).stricter(g.rates.peerTokens.Rates))`)}}},
	{"low-priority-starves", "G6: a priority waits for so many turns of others", []Edit{{"low-priority-has-turns", Never}}},
	{"turns-are-not-counted", "G6: each turn of others counts", []Edit{{"turns-are-counted", Replace("_ = before\nq = q.withoutCaller(w.who)")}}},
	{"forgets-fair-share", "G6: runs take turns", []Edit{{"turn-advances", Drop}, {"run-takes-turn", Drop}}},
	{"reservation-waits-at-the-throttle", "G6: a caller with a reservation does not wait long", own(Within(3, 3, Without(2, 2)))},
	{"throttle-wait-holds-its-reservation", "G6: an agent that waits at the throttle has returned its reservation",
		[]Edit{{"unused-reservation", Unchanged}}},
	{"refused-reservation-is-spent", "P21: a refusal that is documented as unbilled costs nothing",
		[]Edit{{"unused-reservation", Replace(`return settleAhead(s, Settle{Reservation: s.Reservation, Turn: s.Turn + 1, Lost: true})`)}}},
	{"storm-kills", "G6: refusals pause a loop and do not end it", own(Never)},
	{"patience-without-end", "G6: a wait at the gate ends", own(Raise("spec.PatienceMax"))},
	{"turn-of-another-wait", "P7: an admission names the wait that it ends", own(Without(2, 2))},
	{"cancel-passes-the-gate", "B5: nothing is sent that waited at the gate when the cancel came", own(Unchanged)},
	{"wait-forgotten-by-a-crash", "F1: a wait at the gate goes on in the next activation",
		own(Replace(`return s, append(fx, Arm{Timer: throttleTimer, Due: s.patience().end})`))},
}
