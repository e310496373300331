package event

// Warning is warning.raised: a problem that an operator may want to investigate,
// and after which the run continues.
type Warning struct {
	What    string `json:"what"`
	Why     string `json:"why,omitempty"`
	Call    string `json:"call,omitempty"`    // that it is about
	Agent   string `json:"agent,omitempty"`   // that was canceled with those below it; "": the run
	Now     bool   `json:"now,omitempty"`     // of a cancel
	By      string `json:"by,omitempty"`      // who has canceled
	Live    int    `json:"live,omitempty"`    // agents, at a cancel
	Stopped int    `json:"stopped,omitempty"` // agents, after a cancel
}

// LoopDetected is loop.detected: the agent repeats itself. Level 1 is a nudge, 2 a
// directive, 3 a question to a person.
type LoopDetected struct {
	Tier  string `json:"tier"`
	Tool  string `json:"tool"`
	Level int    `json:"level"`
	Times int    `json:"times"`
}

// WarningOfCancel is the What of the warning about a cancel of the run, or of an agent.
const WarningOfCancel = "cancel"

// CanceledByPerson is the reason of a cancel for which a person has given none.
const CanceledByPerson = "canceled by a person"
