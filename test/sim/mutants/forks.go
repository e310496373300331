package main

// ofForks lists mutants of the rules of forks, and of what a fork sets: another model, and what
// agents that were left out use.
var ofForks = []Mutant{
	{"model-set-ignored", "D6: an agent calls the model that its log has set", own(Drop)},
	{"model-adopted-again", "D6: the model that was set takes the place of the one before", own(Replace(`s.NextModel = nil`))},
	{"reservation-of-the-model-before", "D6: a reservation that was asked for by the prices of another model is returned", own(Never)},
	{"fallback-of-the-model-before", "D6: the first request after the change is of the model that was set, and of no fallback",
		own(Replace(`s.Retries, s.Anchor, s.Sense, s.Allowance.Attempts = 0, promptAnchor{}, tokenSense{}, 0`))},
	{"fork-pays-for-its-original", "D6: the request that its original had under way costs a fork nothing", own(Replace(`unsent := whole`))},
	{"fork-is-not-marked", "D6: what is under way in a copied log is its original's", own(Drop)},
	{"original-repeated-by-a-fork", "D6: a person decides whether a fork repeats what its original had begun", own(Drop)},
	{"settled-after-the-cut", "D6: the cut of a fork has what its logs call delivered: else a settled reservation stays open",
		[]Edit{{"cut-consistent", ReplaceTerm(1, 2, `isLost && earliest == 0`)}}},
	{"cut-without-causes", "D6: nothing in the cut of a fork is an effect of what is not",
		[]Edit{{"cut-consistent", Without(2, 2)}}},
	{"cut-of-what-was-stored", "D6: the cut of a fork has all that its point depends on", own(Replace(`l.kept = max(0*needed[other], l.storedUntil(stamp))`))},
	{"children-begin-with-the-model-before", "D6: agents that begin have the model that the run has set", own(Drop)},
	{"others-use-ignored", "F5: what agents that were left out use is not free", own(Unchanged)},
	{"others-use-counted-twice", "F5: what agents that were left out use now takes the place of what they used before",
		own(Replace(`*part.total = part.total.Plus(*part.now)`))},
	{"others-wake-nobody", "F5: who waits for budget is answered when agents that were left out let go", own(Unchanged)},
}
