package main

// ofEntryPoints are rules that the simulator cannot see, or that a user must see, too.
var ofEntryPoints = []Mutant{
	{"calls-joined-by-index", "A1: pieces of parallel calls are joined by id", own(Never)},
	{"child-turns", "A5: a child has 80 turns by default", own(Replace(`turns = turnsChild + 1`))},
	{"metrics-lost", "C6: what a tool reports about its call is in the report", own(Drop)},
	{"hooks-of-a-parent-lost", "E6: the hooks of a parent bind its children, also those of files", []Edit{{"hooks-not-inherited", Drop}}},
}

// noticedBy names the Go tests that have to notice a mutant, each as PACKAGE TEST, in place of the simulator. They
// use a command, the Go API or a node.
var noticedBy = map[string][]string{
	"calls-joined-by-index":  {". TestCallsThatWereObservedDecide", "./internal/modelhttp TestCallsInAnyInterleaving"},
	"child-begins-untainted": {"./supervisor TestScripts/taint"},
	"child-turns":            {"./cmd/cli TestScripts/turns"},
	"metrics-lost":           {". TestReportIsTheSumOfItsSteps"},
	"hooks-of-a-parent-lost": {"./internal/node TestAttackChildWritesNoFileThatItsParentsHookDenies"},
}
