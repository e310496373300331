package control

import "github.com/troupe-run/troupe/internal/control/runevent"

// viewer lists and shows runs, conversations, schedules, nodes and logs. It changes nothing.
type viewer struct {
	cfg       *Config
	lookup    *lookup
	views     *runViews
	lanes     *laneLogs
	schedules *scheduleLogs
	pages     *runevent.Pages
	states    *superStates
	lostCalls questionCache[string] // the texts of calls whose outcome is unknown
	contexts  questionCache[questionContext]
}
