package control

import (
	"github.com/troupe-run/troupe/internal/control/runevent"
	"github.com/troupe-run/troupe/internal/control/runlog"
)

// viewer lists and shows runs, conversations, schedules, nodes and logs. It changes nothing.
type viewer struct {
	cfg       *Config
	lookup    *lookup
	views     *runViews
	lanes     *laneLogs
	pages     *runevent.Pages
	states    *runlog.SupervisorStates
	lostCalls questionCache[string] // the texts of calls whose outcome is unknown
	contexts  questionCache[questionContext]
}
