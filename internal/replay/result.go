package replay

import (
	"bytes"
	"encoding/json"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// CompareResult compares the result of a replay that came to the end of the run with a recorded result,
// as JSON; nil: they are the same, or there is nothing to compare. A recorded result is compared by the
// fields that this version knows.
func (r *Run) CompareResult(recorded []byte) *Difference {
	if len(recorded) == 0 || !r.Ended {
		return nil
	}
	d := &Difference{Log: mailbox.At(r.Result.Run, mailbox.Super), Entry: r.superEntries, State: "the end of the run"}
	is, err := json.Marshal(r.Result)
	if err != nil {
		d.Recorded, d.New = "a result", err.Error()
		return d
	}
	var said event.Result
	if err := json.Unmarshal(recorded, &said); err != nil {
		d.Recorded, d.New = "a result that does not decode: "+err.Error(), "a result"
		return d
	}
	was, err := json.Marshal(said)
	if err == nil && bytes.Equal(was, is) {
		return nil
	}
	d.Recorded, d.New = pointOut("result "+string(was), "result "+string(is))
	return d
}

// States in the first line of a file that leave a trace in the logs.
const (
	stateFinished = "finished"
	stateParked   = "parked"
)

// CompareState compares the state that a file gives for its run with the logs; nil: they agree, or the state
// leaves no trace. A finished run is over, and a parked one has a question without an answer. The entry that
// closes the log may be missing: a process may end after the result is known and before it wrote that entry,
// and no decision follows from it.
func (r *Run) CompareState(claimed string) *Difference {
	d := &Difference{Log: mailbox.At(r.run, mailbox.Super), Entry: r.superEntries, State: "the last entry of the log of the run", Recorded: "the run is " + claimed}
	switch {
	case claimed == stateFinished && !r.Ended:
		d.New = "the run is not over: its last entries are missing, or its supervisor was given up before it wrote them"
	case claimed == stateParked && (r.Ended || r.Super.Parked == 0):
		d.New = "no question is open: the entries that asked it are missing, or others follow"
	default:
		return nil
	}
	return d
}

// isClosed reports whether the log has its end.
func (l *replayedLog) isClosed() bool { return l.reader.Phase == activation.Closed }
