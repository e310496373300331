package main

// ofAllowances lists mutants of the rules of attempts that begin without a grant of their own.
var ofAllowances = []Mutant{
	{"attempt-beyond-the-allowance", "P21: an attempt under an allowance costs no more than is left of it", own(Never)},
	{"allowance-without-a-closing-turn", "P23: the closing turn after an attempt fits, too", own(Never)},
	{"closing-turn-lost-with-the-allowance", "P23: a returned allowance leaves what the closing turn needs",
		own(Replace(`more = Amount{}`))},
	{"allowance-not-held", "P21: the pool holds what it allows", own(Replace(`p.Ahead = p.Ahead.Plus(room)`))},
	{"allowance-spent-twice", "P21: each attempt takes what it used out of the allowance", own(Replace(`a.Taken = budget.Amount{}`))},
	{"more-attempts-than-allowed", "P21: an allowance is for a few attempts", own(Without(1, 2))},
	{"open-attempt-returned", "P21: an attempt under way stays reserved when its allowance is recalled", own(Drop)},
	{"recall-unanswered", "P21: a recalled allowance comes back", own(Replace("return s, []Effect{e}[:0]"))},
	{"allowances-never-recalled", "P21: allowances come back when others need them", own(Never)},
	{"tight-allowances-kept", "P21: allowances stay a small part of what is free", own(Within(3, 3, Without(2, 2)))},
	{"allowance-while-others-wait", "P21: an agent that waits for budget comes before allowances", own(Without(1, 4))},
	{"allowance-kept-over-a-request", "P21: a request gives the allowance back", own(Drop)},
	{"allowance-not-returned-at-the-end", "P21: an agent that ends has used no more than it settled", own(Drop)},
}
