package runindex

import (
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// Row is a run as the index has it.
type Row struct {
	client.RunInfo
	// Summary is what the node that acts on the run has published; nil: nothing yet.
	Summary *RowSummary `json:"summary,omitempty"`
	// Answered lists the open questions of Summary that clients have answered: the supervisor may
	// not know that yet.
	Answered []AnsweredQuestion `json:"answered,omitempty"`
	// LogStore is where the logs of the run are (Index.LogStore); "": it is not known.
	LogStore string `json:"log_store,omitempty"`
	// Removing says that the removal of the run has begun: to clients it does not exist any more. If the process that
	// removes it dies, retention or the next request removes the rest.
	Removing bool `json:"removing,omitempty"`
}

// isMissing reports whether the index has no such row: each row that is written has the id of its run.
func (r *Row) isMissing() bool { return r.RunID == "" }

// RowSummary is the Summary of a run up to an entry of its supervisor's log.
type RowSummary struct {
	supervisor.Summary
	Place uint64 `json:"place"`
	// Form is that of the program that wrote it. A program with an older form does not use it.
	Form int `json:"form"`
}

// AnsweredQuestion names a question (see supervisor.OpenQuestion) and the request that answers it.
// The request that is in the row appends the answer, and no other.
type AnsweredQuestion struct {
	Agent spec.ID `json:"agent"`
	Query string  `json:"query"`
	Asked uint64  `json:"asked"`
	// Request wrote the mark at AtMS, before it appended the answer. "": an older release wrote it,
	// after the answer.
	Request string `json:"request,omitempty"`
	AtMS    int64  `json:"at_ms,omitempty"`
	// Logged says that the log of the agent was read since then, and has an answer.
	Logged bool `json:"logged,omitempty"`
}

// AnsweredMax is how many answers of open questions a row remembers. No others are accepted until a
// node has read some of them.
const AnsweredMax = 16

// IsDoubtful reports whether the process that wrote a mark may have died before it appended the
// answer.
func (a AnsweredQuestion) IsDoubtful(now time.Time) bool {
	return a.Request != "" && !a.Logged && now.Sub(time.UnixMilli(a.AtMS)) > bounds.RequestTimeout
}

// Names reports whether the mark is that of a question.
func (a AnsweredQuestion) Names(q supervisor.OpenQuestion) bool {
	return a.Agent == q.Agent && a.Query == q.Query && a.Asked == q.Asked
}

// IsAnswered reports whether a client has answered the question.
func (r Row) IsAnswered(q supervisor.OpenQuestion) bool {
	return slices.ContainsFunc(r.Answered, func(a AnsweredQuestion) bool { return a.Names(q) })
}

// IsAllAnswered reports whether clients have answered all questions of a run.
func (r Row) IsAllAnswered(s supervisor.Summary) bool {
	return !s.QuestionsCut && !slices.ContainsFunc(s.Questions, func(q supervisor.OpenQuestion) bool { return !r.IsAnswered(q) })
}

// hasClosed reports whether a question that was open by an older Summary is closed by that of the row.
func (r Row) hasClosed(q AnsweredQuestion, older RowSummary) bool {
	s := r.Summary
	return s != nil && s.Form <= mailbox.Form && s.Place > older.Place && !s.QuestionsCut && !slices.ContainsFunc(s.Questions, q.Names)
}

// setSummary replaces an older Summary. A row that has none was not written by the node that
// opened the run, so setSummary fills it in.
func (r *Row) setSummary(s RowSummary) (changed bool) {
	if r.Summary != nil && r.Summary.Form <= mailbox.Form && r.Summary.Place >= s.Place {
		return false
	}
	r.Summary = &s
	r.Answered = slices.DeleteFunc(r.Answered, func(a AnsweredQuestion) bool {
		return !s.QuestionsCut && !slices.ContainsFunc(s.Questions, a.Names)
	})
	return true
}

// InfoOf makes the row of a run from its state.
func InfoOf(s supervisor.State, node string) client.RunInfo {
	info := client.RunInfo{State: client.RunLive, Node: node, Title: TitleOf(s.Run.Goal), Agent: s.Run.Root, Fork: s.Run.Fork, Model: s.Run.Model.Name, Owner: s.Run.Owner}
	if s.Run.InLane {
		info.Conversation = s.Run.Conversation
	}
	if s.Began > 0 {
		info.Started = time.UnixMilli(s.Began).UTC().Format(time.RFC3339)
	}
	return info
}

// SummaryOrEmpty returns the Summary of the row, or an empty one.
func (r Row) SummaryOrEmpty() supervisor.Summary {
	if r.Summary == nil {
		return supervisor.Summary{}
	}
	return r.Summary.Summary
}

// EndOf returns when a run ended, according to the index.
func EndOf(info client.RunInfo) (time.Time, bool) {
	if info.State != client.RunFinished {
		return time.Time{}, false
	}
	if end, err := time.Parse(time.RFC3339, info.Ended); err == nil {
		return end, true
	}
	end, err := time.Parse(time.RFC3339, info.Started)
	if err != nil {
		return time.Time{}, false
	}
	if info.Result != nil {
		end = end.Add(time.Duration(info.Result.DurationMS) * time.Millisecond)
	}
	return end, true
}

// FinishRow ends a row. If the row has no start time, it takes the one of the result:
// without one, a row would never be old enough for prune.
func FinishRow(i *client.RunInfo, r event.Result, now time.Time) {
	i.State, i.Result = client.RunFinished, &r
	if i.Ended == "" {
		i.Ended = now.UTC().Format(time.RFC3339)
	}
	if i.Started == "" {
		i.Started = now.Add(-time.Duration(r.DurationMS) * time.Millisecond).UTC().Format(time.RFC3339)
	}
}

// rowTextBytes is the most of a text in a row: what a model, a provider or a client wrote must not fill the index.
const rowTextBytes = 2 << 10

// Summarize returns a row as the index has it: the answer, the agents and the whole texts of a run are in its
// log, and before its end there is no result.
func Summarize(i client.RunInfo) client.RunInfo {
	if i.State != client.RunFinished {
		i.Result = nil
	}
	if i.Result != nil {
		short := *i.Result
		short.Text, short.Agents = "", nil
		short.Detail, short.Journal = clip.Text(short.Detail, rowTextBytes), clip.Text(short.Journal, rowTextBytes)
		if short.Cancel != nil {
			cancel := *short.Cancel
			cancel.Why = clip.Text(cancel.Why, rowTextBytes)
			short.Cancel = &cancel
		}
		i.Result = &short
	}
	return i
}

// titleBytes is how much of its task is the title of a run.
const titleBytes = 80

// TitleOf returns the title of a run.
func TitleOf(task string) string { return clip.Marked(task, titleBytes, "…") }
