package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// replayLogs replays the logs of a trial, with the events that they were told as.
func replayLogs(log []mailbox.Message) *replay.Run {
	return replay.Logs(log, replay.Options{Events: true, Node: nodeName})
}

// compareReport reports how a replay differs from the logs and from the run's own report: its
// decisions, its result, the ends of its agents, and every event that it published.
func compareReport(f *replay.Run, said *event.Result, told []event.Published) error {
	if f.ReadErr != nil {
		return f.ReadErr
	}
	if err := f.Err(); err != nil {
		return err
	}
	if said != nil {
		if err := compareJSON("the result", *said, f.Result); err != nil {
			return err
		}
	}
	for _, a := range f.Result.Agents {
		if s, ok := f.Agents[a.ID]; a.Phase == "done" && (!ok || s.Outcome.Reason != a.Reason) {
			return fmt.Errorf("%s ended as %s, its log ends as %s", a.ID, a.Reason, s.Outcome.Reason)
		}
	}
	again := map[string]event.Published{}
	for _, e := range f.Events {
		again[e.ID] = e
	}
	for _, e := range told {
		if e.Seq == 0 {
			continue // a delta is in no log
		}
		if err := compareJSON("event "+e.ID, e, again[e.ID]); err != nil {
			return err
		}
	}
	return nil
}

func compareJSON(what string, was, is any) error {
	a, err := json.Marshal(was)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b, err := json.Marshal(is)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s was %s and is %s", what, clipText(a), clipText(b))
	}
	return nil
}

const clipBytes = 300

func clipText(raw []byte) string {
	return clip.Marked(string(raw), clipBytes, "…")
}

// claimEnd is the end of the run as its node has reported it.
func (t *caseRun) claimEnd() verify.Claim {
	switch {
	case t.reported != nil:
		return verify.Claim{State: "finished", Reason: string(t.reported.Reason)}
	case t.parked:
		return verify.Claim{State: "parked"}
	}
	return verify.Claim{}
}

// verifyLogs checks the logs of a trial against the rules of the logs, and that they show the claimed end.
func verifyLogs(log []mailbox.Message, claim verify.Claim) error {
	r := verify.Run(log, claim)
	switch {
	case len(r.Findings) > 0:
		return fmt.Errorf("%d findings, first %s", len(r.Findings), r.Findings[0])
	case r.Damaged:
		return errors.New("they record that one of them was damaged")
	}
	return nil
}
