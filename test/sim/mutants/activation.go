package main

// ofActivations lists mutants of the rules by which an activation decides what its shell does.
var ofActivations = []Mutant{
	{"drain-leaves-work-behind", "P3: who drains waits for the work under way", own(Never)},
	{"released-before-its-results", "P3: Released follows what the work brought", own(Never)},
	{"begins-without-its-lease", "P4: nothing begins while the lease is over", own(Without(2, 2))},
	{"regained-lease-not-proven", "P27: a lease that was taken again is proven before something begins",
		own(Replace("s.proofLease = s.nodeLease\ndoPostponed(s)\nreturn"))},
	{"closed-log-ends-before-it-answers", "P25: a closed log stays until its answers are out", own(Never)},
	{"drains-detached", "P3, P18: who drains reads on until its own entries were read back", own(AndAlso(`!s.toDrain`))},
}
