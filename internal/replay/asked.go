package replay

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// An own entry records the outcome of a decision: the reply to a model call, the beginning or the result of a tool
// call, the answers of hooks, a timer. So an earlier entry of the same log must have asked for each of them. A tool's
// result counts whatever activation asked for it, so the keys are never forgotten.

// effectKey names what an effect asks for; "": nothing that becomes an own entry.
func effectKey(effect any) string {
	switch e := effect.(type) {
	case agent.CallModel:
		return activation.ModelKey(e.Reservation)
	case agent.AwaitThrottle:
		return fmt.Sprintf("throttle %d", e.Pause)
	case agent.Begin:
		return "begin " + activation.AttemptKey(e.Call, e.Attempt)
	case agent.CallTool:
		return "call " + activation.AttemptKey(e.Call, e.Attempt)
	case agent.RunHooks:
		return activation.HookKey(e.ID)
	case agent.Arm:
		return "timer " + e.Timer
	case supervisor.Arm:
		return "timer " + e.Timer
	}
	return ""
}

// factKey names the effect that an own entry answers, and describes it; "": none.
func factKey(fact agent.Fact) (key, what string) {
	switch f := fact.(type) {
	case agent.Replied:
		return activation.ModelKey(f.Reservation), fmt.Sprintf("a model call under reservation %d", f.Reservation)
	case agent.Failed:
		return activation.ModelKey(f.Reservation), fmt.Sprintf("a model call under reservation %d", f.Reservation)
	case agent.Throttled:
		return activation.ModelKey(f.Reservation), fmt.Sprintf("a model call under reservation %d", f.Reservation)
	case agent.Admitted:
		return fmt.Sprintf("throttle %d", f.Pause), fmt.Sprintf("wait %d for the throttle", f.Pause)
	case agent.Started:
		return "begin " + activation.AttemptKey(f.Call, f.Attempt), fmt.Sprintf("the beginning of call %s, attempt %d", f.Call, f.Attempt)
	case agent.Returned:
		return "call " + activation.AttemptKey(f.Call, f.Attempt), fmt.Sprintf("call %s, attempt %d", f.Call, f.Attempt)
	case agent.Hooked:
		return activation.HookKey(f.ID), "hooks " + f.ID
	case agent.Woke:
		return "timer " + f.Timer, "timer " + f.Timer
	}
	return "", ""
}

// checkAsked compares an own entry that counts with what this version asked for before it.
func (l *replayedLog) checkAsked(f activation.Fact) {
	if f.From != "" {
		return
	}
	fact, ok, err := agent.Decode(f.Kind, func(into any) error { return mailbox.Unmarshal(f.Body, into) })
	if !ok || err != nil {
		return
	}
	if end, ok := fact.(agent.Closed); ok {
		l.checkClosed(f, end)
		return
	}
	key, what := factKey(fact)
	if key == "" {
		return
	}
	l.answers++
	if _, ok := l.asked[key]; ok {
		return
	}
	text, err := json.Marshal(fact)
	if err != nil {
		text = nil
	}
	l.addDifference(f.N, clip.Text(fmt.Sprintf("%s %s", f.Kind, text), differenceBytes), "no earlier entry asks for "+what)
}

// checkClosed compares the end that a log records with the machine's.
func (l *replayedLog) checkClosed(f activation.Fact, end agent.Closed) {
	l.answers++
	if !l.machine.Ended() {
		l.addDifference(f.N, "the end of the log", "no end: "+l.describeState())
		return
	}
	if end.Finish == nil || l.finish == nil {
		return
	}
	was, err := mailbox.Marshal(*end.Finish)
	if err != nil {
		return
	}
	is, err := mailbox.Marshal(*l.finish)
	if err == nil && !bytes.Equal(was, is) {
		a, b := pointOut(describeMessage(end.Finish.Kind(), was), describeMessage(l.finish.Kind(), is))
		l.addDifference(f.N, "the end "+a, b)
	}
}
