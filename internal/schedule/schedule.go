// Package schedule is the schedule of a run as a value: when the next run is due, which due times were missed, and
// which runs were begun. PURE: State is what the entries of the schedule's log say, and Next decides what a
// node does about it.
//
// A schedule has a log of its own in the mailbox, "schedule-<id>.schedule". No actor owns it. Any node may append to it
// at any time, because the order of the log decides: of two nodes that decide about the same due time, the entry of the
// second has no effect. The id of a run follows from its schedule and its due time, so two nodes that open the run of
// one due time open one run.
package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	logAgent  = "schedule"
	logPrefix = "schedule-"
)

// LogOf is the address of the log of a schedule.
func LogOf(id string) mailbox.Address { return mailbox.At(logPrefix+id, logAgent) }

// OfLog is the schedule of the address of its log; ok is false for any other address.
func OfLog(a mailbox.Address) (id string, ok bool) {
	id, ok = strings.CutPrefix(a.Run(), logPrefix)
	return id, ok && a.Agent() == logAgent
}

// IDBytesMax is the longest id of a schedule, for logs whose tokens have at most tokenMax bytes.
func IDBytesMax(tokenMax int) int { return tokenMax - len(logPrefix) }

const (
	// SeenMax is how many messages of a trigger a schedule remembers.
	SeenMax = 1000
	// EntriesMax is how many entries the log of a schedule has before it is condensed.
	EntriesMax = 2 * SeenMax
	// reasonBytesMax is how much of the reason of a refusal is kept.
	reasonBytesMax = 500
)

// Why a due time began no run.
const (
	WhyLate    = "late"    // no node was there in time, and the schedule skips missed times, or missed very many
	WhyOverlap = "overlap" // the run before was still at work
	WhyRefused = "refused" // the node refused the run
)

// State is a schedule up to an entry of its log. The zero value is a schedule that does not exist.
type State struct {
	// Request is the request of each run, as JSON; empty: the schedule does not exist.
	Request []byte `msgpack:"q,omitempty"`
	Rule    Rule   `msgpack:"u"`
	Owner   string `msgpack:"ow,omitempty"` // of its runs
	Salt    []byte `msgpack:"sa,omitempty"` // see Scheduled
	// CreatedMS is when it was created. Times are Unix milliseconds.
	CreatedMS int64 `msgpack:"c,omitempty"`
	// LastMS is the newest due time that was decided about.
	LastMS int64 `msgpack:"l,omitempty"`
	// Pending is a due time whose run must be opened; 0: none.
	Pending int64 `msgpack:"p,omitempty"`
	// PendingMissed is how many earlier due times the pending run replaces.
	PendingMissed int `msgpack:"pm,omitempty"`
	// LastRun is the newest run, which was due at LastRunMS, or whose message was taken then.
	LastRun   string `msgpack:"lr,omitempty"`
	LastRunMS int64  `msgpack:"ld,omitempty"`
	// Fired, Missed and Refused count runs, due times without a run, and runs that were refused.
	Fired   int `msgpack:"nf,omitempty"`
	Missed  int `msgpack:"nm,omitempty"`
	Refused int `msgpack:"nr,omitempty"`
	// Error says why the newest refused run was refused.
	Error string `msgpack:"e,omitempty"`
	// Messages are the newest messages of a trigger, in the order in which they came.
	Messages []Message `msgpack:"m,omitempty"`
	// Deleted is the place of the entry that ended the schedule; 0: it goes on.
	Deleted uint64 `msgpack:"-"`
	// Place and StampMS are those of the newest entry, and Entries counts them all.
	Place   uint64 `msgpack:"-"`
	StampMS int64  `msgpack:"-"`
	Entries int    `msgpack:"-"`
	// Condensed is the place of the newest entry that holds all that was before it; 0: there is none.
	Condensed uint64 `msgpack:"-"`
}

// Message is a message of a trigger that began the run Run; "": the run was refused.
type Message struct {
	ID  string `msgpack:"i"`
	Run string `msgpack:"r"`
	At  int64  `msgpack:"t"` // when it was taken
}

// Facts of a schedule's log. A fact that is not true of the schedule has no effect.
type (
	// Scheduled creates the schedule.
	Scheduled struct {
		Request []byte `msgpack:"q"`
		Rule    Rule   `msgpack:"u"`
		Owner   string `msgpack:"ow,omitempty"`
		// Salt is random: without it nobody can compute the ids of the runs.
		Salt []byte `msgpack:"sa,omitempty"`
	}
	// Due decides about all due times after AfterMS up to DueMS: DueMS gets a run, unless Why says why it gets none.
	// Missed counts the others. If another entry has decided about one of them, it has no effect.
	Due struct {
		AfterMS int64  `msgpack:"a"`
		DueMS   int64  `msgpack:"d"`
		Missed  int    `msgpack:"m,omitempty"`
		Why     string `msgpack:"w,omitempty"`
	}
	// Fired says that the run of the pending due time was opened.
	Fired struct {
		DueMS int64  `msgpack:"d"`
		Run   string `msgpack:"r"`
	}
	// Refused says that the run of the pending due time, or of a message, cannot be opened.
	Refused struct {
		DueMS  int64  `msgpack:"d,omitempty"`
		Run    string `msgpack:"r,omitempty"`
		Reason string `msgpack:"w"`
	}
	// Taken decides that a message of the trigger begins a run.
	Taken struct {
		ID  string `msgpack:"i"`
		Run string `msgpack:"r"`
	}
	// Ended ends the schedule: it was deleted.
	Ended struct{}
	// Condensed holds the state after the entry at the place After: if it comes next, the entries
	// before it are not needed.
	Condensed struct {
		After uint64 `msgpack:"a"`
		State State  `msgpack:"s"`
	}
)

// Fact is one of the facts above.
type Fact interface{ Kind() string }

// The kinds in logs.
func (Scheduled) Kind() string { return "scheduled" }
func (Due) Kind() string       { return "due" }
func (Fired) Kind() string     { return "fired" }
func (Refused) Kind() string   { return "refused" }
func (Taken) Kind() string     { return "taken" }
func (Ended) Kind() string     { return "ended" }
func (Condensed) Kind() string { return "condensed" }

// Decode makes a fact; ok is false for a kind that this program does not know.
func Decode(kind string, body func(into any) error) (f Fact, ok bool, err error) {
	switch kind {
	case Scheduled{}.Kind():
		f, err = decodeAs[Scheduled](body)
	case Due{}.Kind():
		f, err = decodeAs[Due](body)
	case Fired{}.Kind():
		f, err = decodeAs[Fired](body)
	case Refused{}.Kind():
		f, err = decodeAs[Refused](body)
	case Taken{}.Kind():
		f, err = decodeAs[Taken](body)
	case Ended{}.Kind():
		f, err = decodeAs[Ended](body)
	case Condensed{}.Kind():
		f, err = decodeAs[Condensed](body)
	default:
		return nil, false, nil
	}
	return f, true, err
}

func decodeAs[T Fact](body func(any) error) (Fact, error) {
	var v T
	err := body(&v)
	return v, err
}

// Entry is a fact as a schedule reads it from its log.
type Entry struct {
	Place uint64
	At    int64 // Unix milliseconds
	Fact  Fact
}

// Apply applies the next entry of the log.
func (s *State) Apply(e Entry) {
	before := s.Place
	s.Entries, s.Place, s.StampMS = s.Entries+1, e.Place, e.At
	switch f := e.Fact.(type) {
	case Scheduled:
		if !s.exists() {
			s.Request, s.Rule, s.Owner, s.Salt = f.Request, f.Rule, f.Owner, f.Salt
			s.CreatedMS, s.LastMS, s.Deleted = e.At, f.Rule.StartMS-1, 0
		}
	case Due:
		if s.exists() && s.Pending == 0 && f.AfterMS == s.LastMS && f.DueMS > s.LastMS && f.DueMS <= e.At {
			s.decide(f)
		}
	case Fired:
		if f.DueMS == s.Pending {
			s.Fired, s.LastRun, s.LastRunMS = s.Fired+1, f.Run, f.DueMS
			s.Pending, s.PendingMissed = 0, 0
		}
	case Refused:
		s.refuse(f)
	case Taken:
		if _, known := s.Find(f.ID); s.exists() && !known {
			s.Messages = append(s.Messages[max(0, len(s.Messages)-SeenMax+1):], Message{f.ID, f.Run, e.At})
			s.Fired, s.LastRun, s.LastRunMS = s.Fired+1, f.Run, e.At
		}
	case Ended:
		if s.exists() {
			*s = State{Deleted: e.Place, Place: e.Place, StampMS: e.At, Entries: s.Entries}
		}
	case Condensed:
		if before == 0 || s.exists() && before == f.After {
			n := f.State
			n.Place, n.StampMS, n.Entries, n.Condensed = e.Place, e.At, 1, e.Place
			*s = n
		}
	}
}

func (s *State) exists() bool { return len(s.Request) > 0 }

// Exists reports whether the schedule was created and not deleted.
func (s *State) Exists() bool { return s.exists() }

func (s *State) decide(f Due) {
	s.LastMS, s.Missed = f.DueMS, s.Missed+f.Missed
	if f.Why != "" {
		s.Missed++
		return
	}
	s.Pending, s.PendingMissed = f.DueMS, f.Missed
}

func (s *State) refuse(f Refused) {
	switch {
	case f.DueMS != 0 && f.DueMS == s.Pending:
		s.Pending, s.PendingMissed = 0, 0
	case f.Run != "" && s.forget(f.Run):
		s.Fired--
	default:
		return
	}
	s.Refused, s.Error = s.Refused+1, f.Reason
}

// forget makes a message one that began no run. If that was the newest run, the one of the message before is.
func (s *State) forget(run string) bool {
	i := slices.IndexFunc(s.Messages, func(m Message) bool { return m.Run == run })
	if i < 0 {
		return false
	}
	s.Messages = slices.Clone(s.Messages)
	s.Messages[i].Run = ""
	if s.LastRun == run {
		s.LastRun, s.LastRunMS = s.newestMessageRun()
	}
	return true
}

// newestMessageRun is the newest run that a message began, and when the message was taken; "": there is none.
func (s *State) newestMessageRun() (run string, atMS int64) {
	for _, m := range slices.Backward(s.Messages) {
		if m.Run != "" {
			return m.Run, m.At
		}
	}
	return "", 0
}

// Find returns the message of an id, if the schedule remembers it.
func (s *State) Find(message string) (Message, bool) {
	i := slices.IndexFunc(s.Messages, func(m Message) bool { return m.ID == message })
	if i < 0 {
		return Message{}, false
	}
	return s.Messages[i], true
}

// Condense is the fact with which the entries so far are not needed; ok is false while the log is short.
func (s *State) Condense() (f Condensed, ok bool) {
	if !s.exists() || s.Entries < EntriesMax {
		return f, false
	}
	return Condensed{After: s.Place, State: *s}, true
}

// NewRefused is the fact that a run was refused.
func NewRefused(due int64, run, reason string) Refused {
	return Refused{DueMS: due, Run: run, Reason: clip.Marked(reason, reasonBytesMax, "")}
}

// RunID is the id of the run of the schedule named schedule that is due at a time: a ULID, so that runs are listed in
// the order of their due times. what tells runs of the same time apart: the id of a message.
func (s *State) RunID(schedule string, dueMS int64, what string) string {
	text := "schedule\x00" + schedule + "\x00" + strconv.FormatInt(dueMS, 10) + "\x00" + what + "\x00" + string(s.Salt)
	sum := sha256.Sum256([]byte(text))
	var id ulid.ULID
	if err := id.SetTime(uint64(max(0, dueMS))); err != nil { // after the year 10889
		return "s" + hex.EncodeToString(sum[:15])
	}
	copy(id[6:], sum[:])
	return strings.ToLower(id.String())
}
