package sim

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// watchGates keeps the judge's list of hook points that are open.
func (s *sim) watchGates(w *shadow, after *agent.State, effect any) {
	j := &w.judge
	switch e := effect.(type) {
	case agent.RunHooks:
		if e.Point.Gate() {
			j.open[e.ID] = e
		}
		if want := hooksAt(after, e.Point, e.Input.Tool); !slices.Equal(want, e.Hooks) {
			s.fail("%s runs %d hooks at %s, and %d stand there", w.actor.id, len(e.Hooks), e.Point, len(want))
		}
		if after.Cancel != nil && e.Point != spec.HookStopFailure {
			s.fail("%s runs hooks at %s after the cancel", w.actor.id, e.Point)
		}
	case agent.AbortHooks:
		delete(j.open, e.ID)
	case agent.Arm:
		if call, ok := strings.CutPrefix(e.Timer, "retry-"); ok {
			j.due[call] = e.Due
		}
	case agent.CallModel:
		for id, g := range j.open {
			s.fail("%s calls its model while %s is open at %s", w.actor.id, id, g.Point)
		}
	}
}

// watchBegin checks that a call begins only after its hook point, and only if it may.
func (s *sim) watchBegin(w *shadow, after *agent.State, id string) {
	j, a := &w.judge, w.actor
	i := slices.IndexFunc(after.Calls, func(c agent.Call) bool { return c.ID == id })
	if i < 0 {
		s.fail("%s begins %s, which nobody asked for", a.id, id)
	}
	c := after.Calls[i]
	for gate, g := range j.open {
		if g.Input.Call == id || g.Point != spec.HookPreTool && g.Point != spec.HookToolError {
			s.fail("%s begins %s (%s) while %s is open", a.id, id, c.Name, gate)
		}
	}
	switch {
	case j.denied[id] != "":
		s.fail("%s begins %s (%s), and its hooks said %q", a.id, id, c.Name, j.denied[id])
	case !j.passed[id] && len(hooksAt(after, spec.HookPreTool, c.Name)) > 0:
		s.fail("%s begins %s (%s) past its hooks", a.id, id, c.Name)
	case !offered(after, c.Name):
		s.fail("%s begins %s (%s), which it may not use", a.id, id, c.Name)
	case after.Ending != "":
		s.fail("%s begins %s (%s) in its closing turn", a.id, id, c.Name)
	case c.Name == j.halted:
		s.fail("%s begins %s (%s), whose calls of this turn were not to run", a.id, id, c.Name)
	case after.Now < j.due[id]:
		s.fail("%s begins %s (%s) again %d ms too early", a.id, id, c.Name, j.due[id]-after.Now)
	}
}

// watchRequest checks that a turn's prompt begins with the prompt before it, except after a
// compaction, and that a model that was given up is not called again.
func (s *sim) watchRequest(w *shadow, after *agent.State, e agent.CallModel) {
	j, a := &w.judge, w.actor
	if after.Purpose != agent.ForTurn {
		s.watchSummary(w, e)
		return
	}
	j.summaries = 0
	if slices.Contains(j.left, e.Model) {
		s.fail("%s calls %s again, which it had given up", a.id, e.Model)
	}
	if j.said != e.Model && j.said != "" {
		j.left = append(j.left, j.said)
	}
	j.said = e.Model
	if len(after.Calls) > 0 {
		s.fail("%s calls its model with %d calls open", a.id, len(after.Calls))
	}
	if after.Rounds.Sent != nil || len(hooksAt(after, spec.HookContext, "")) > 0 {
		j.sent = nil // hooks may send what they like, this turn
		return
	}
	s.watchPinned(w, after, e.Request)
	head := e.Request.System + "\x00" + e.Request.Dynamic
	if j.sent != nil && j.fold == after.Fold && (head != j.head || !continues(j.sent, e.Request.Messages)) {
		s.fail("%s sends another beginning than in the turn before, and nothing was compacted", a.id)
	}
	j.sent, j.head, j.fold = e.Request.Messages, head, after.Fold
}

// continues reports whether one prompt begins with another. The last message of the other may
// have been extended.
func continues(old, now []model.Message) bool {
	if len(now) < len(old) {
		return false
	}
	if len(old) > 0 && len(now) > 0 && &old[0] == &now[0] {
		return true
	}
	for i := range old {
		was, is := old[i], now[i]
		if i == len(old)-1 && was.Role == model.User && strings.HasPrefix(is.Text, was.Text) {
			is.Text = was.Text
		}
		if string(canonMessage(nil, &was)) != string(canonMessage(nil, &is)) {
			return false
		}
	}
	return true
}

// watchWait checks that a waiting agent has said for what: its question was published to
// a person, or a timer is armed.
func (s *sim) watchWait(a *actor, before, after *agent.State, out activation.Stepped) {
	if after.Phase != agent.Waiting || after.Idle || before.Phase == agent.Waiting && before.Query == after.Query {
		return
	}
	q := after.Query
	if after.Pause.Waiting {
		s.watchPause(a, before, after, out)
		return
	}
	if q.Query == "" {
		if !slices.ContainsFunc(out.World, func(e any) bool { arm, ok := e.(agent.Arm); return ok && arm.Due == after.RetryDue }) {
			s.fail("%s waits for nothing", a.id)
		}
		return
	}
	asked := slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool {
		var p agent.Park
		return t.Kind == "park" && mailbox.Unmarshal(t.Body, &p) == nil && p == q
	})
	if q.Reason != spec.ResumeUnsafe && !after.Task.LoopOptions.Ask {
		s.fail("%s asks %q, and nobody can be asked", a.id, q.Question)
	}
	if !asked || strings.TrimSpace(q.Question) == "" || q.Reason == "" {
		s.fail("%s waits for a person, and asks %+v (told %v)", a.id, q, asked)
	}
}
