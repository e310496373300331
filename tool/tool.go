// Package tool defines what a model may call: a named function with a schema, an
// effect class and limits, and the Set of tools that an agent gets.
package tool

import (
	"context"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/model"
)

// Limits of one call unless the tool declares others.
const (
	TimeoutDefault   = 60 * time.Second
	OutputBytesMax   = 64 << 10
	AbandonGrace     = 2 * time.Second // how long a canceled tool may take to return before it is abandoned
	DescriptionBytes = 1024
	WholeBytesMax    = 4 << 20 // the most that is kept of a clipped result
)

// Call describes to a tool the call that it serves.
type Call struct {
	Run, Agent string
	Turn       int
	ID         string // "<turn>-<index>"
	Key        string // idempotency key: the same for every attempt of this call
	Attempt    int    // from 1
	Deadline   time.Time
	Trace      string // W3C traceparent, may be empty
	// Metric records a figure of the call, which the log, the event tool.finished and `troupe report` show: the
	// last value of a name counts. See spec.MetricsMax for the limits. It is never nil inside a Tool.
	Metric      func(name string, value float64)
	Args        []byte         // JSON that fits the schema
	Tainted     bool           // the agent has read text from outside
	MayWriteAny bool           // a person, or a rule of one, allows this call: it may write any file of the directory
	Progress    func(Progress) // never nil inside a Tool; one call at a time; a watcher may miss some
	// Changed records what the call changed; see ReportChanges.
	Changed func(changes []filechange.Change, lost string)
}

// ReportChanges records what the call changed in files of the directory. lost says why not all changes are
// among them; "": they are.
func (c Call) ReportChanges(changes []filechange.Change, lost string) {
	if c.Changed != nil {
		c.Changed(changes, lost)
	}
}

// Progress is how far a call has come, as its tool reports it.
type Progress struct {
	Done    float64
	Total   float64 // 0: not known
	Message string
}

// Result is what the model reads.
type Result struct {
	Text  string
	Error bool
	// TextBytes is how long Text was before the tool lost the middle of it; 0: it is all there.
	TextBytes int64
	// Transient means that the failure may be temporary, so that the same call may succeed a little
	// later. Set.Call sets it on a timeout and for an error made by Transient.
	Transient bool
	// Whole is set by Set.Call when Text is a clipped form of it: masked, valid
	// UTF-8, at most WholeBytesMax. A caller may keep it as a blob.
	Whole string
	// Changes are the files that the call changed, and ChangesLost why there may be more. Set.Call sets them.
	Changes     []filechange.Change
	ChangesLost string
	// Metrics are what the tool has reported to Call.Metric, and MetricsLost how many reports broke a limit.
	// Set.Call sets them.
	Metrics     spec.Metrics
	MetricsLost int
	// Tainted: Text comes from an agent of an earlier run that had read text from outside.
	Tainted bool
}

// Tool is one function that a model may call. Call returns an error only for a failure that
// the model should read as a failed call; the Set catches a panic.
type Tool interface {
	Spec() model.ToolSpec
	Call(ctx context.Context, call Call) (Result, error)
}
