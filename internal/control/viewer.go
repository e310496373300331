package control

// viewer lists and shows runs, conversations, schedules, nodes and logs. It changes nothing.
type viewer struct {
	cfg       *Config
	lookup    *lookup
	views     *runViews
	lanes     *laneLogs
	schedules *scheduleLogs
	pages     *eventPages
	states    *superStates
	lostCalls questionCache[string] // the texts of calls whose outcome is unknown
	contexts  questionCache[questionContext]
}
