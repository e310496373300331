package sim

import (
	"reflect"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
)

// checkWaiting checks that a waiting agent has said for what: its question was published to
// a person, or a timer is armed.
func (j *agentJudge) checkWaiting(before, after *agent.State, out activation.Stepped) {
	a, w := j.actor, after.Suspended
	if (after.Phase == agent.Waiting) != (w.Why != "") {
		j.fail(waitsAreNamed, "%s is %s, and suspended for %q", a.id, after.Phase, w.Why)
	}
	if w.Why == before.Suspended.Why && w.Question == before.Suspended.Question {
		return
	}
	switch w.Why {
	case agent.AwaitsThrottle:
		j.pauses.checkPause(before, after, out)
	case agent.AwaitsRetry:
		if !slices.ContainsFunc(out.Effects, func(e any) bool { arm, ok := e.(agent.Arm); return ok && arm.Due == w.Due }) {
			j.fail(waitsAreNamed, "%s waits for nothing", a.id)
		}
	case agent.AwaitsPerson, agent.AwaitsDriftAnswer:
		j.checkQuestion(after, w.Question, out)
	case agent.AwaitsOthers: // see backgroundJudge
	}
}

// checkQuestion checks that a person may be asked, and reads the question.
func (j *agentJudge) checkQuestion(after *agent.State, q agent.Park, out activation.Stepped) {
	a := j.actor
	asked := slices.ContainsFunc(out.Messages, func(t activation.OutboxMessage) bool {
		var p agent.Park
		return t.Kind == "park" && mailbox.Unmarshal(t.Body, &p) == nil && reflect.DeepEqual(p, q)
	})
	if q.Reason != spec.ResumeUnsafe && (!after.Task.LoopOptions.AskPeople || j.permits.isUnattended()) {
		j.fail(waitsAreNamed, "%s asks %q, and nobody can be asked", a.id, q.Question)
	}
	if !asked || strings.TrimSpace(q.Question) == "" || q.Reason == "" {
		j.fail(waitsAreNamed, "%s waits for a person, and asks %+v (told %v)", a.id, q, asked)
	}
}
