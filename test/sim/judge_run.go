package sim

import (
	"reflect"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/supervisor"
)

// runJudge checks the steps of the supervisor, and the end of the run.
type runJudge struct {
	*environment
	population *population
	judges     *judges
	over       int   // Publish in the supervisor's log
	parked     bool  // the run waits for people alone
	parkedAt   int64 // since when
}

func (j *runJudge) checkEnd() {
	st := j.population.super.shadow.super.State
	if st.Phase != supervisor.Over {
		j.fail(runsEnd, "every log is closed, but the run is %s", st.Phase)
	}
	if j.over != 1 && !j.population.super.damaged {
		j.fail(runsEnd, "the run said %d times that it is over", j.over)
	}
	r := st.Result()
	if o := j.judges.budget.others; r.Budget.Reserved != o.Held.Tokens || st.Pool.Kept != o.Kept || st.Waiting() != 0 {
		j.fail(poolAddsUp, "at the end %d tokens are reserved, %+v kept, %d wait", r.Budget.Reserved, st.Pool.Kept, st.Waiting())
	}
	for _, a := range j.population.actors {
		if a.shadow.agent != nil {
			a.shadow.judge.checkFinal()
		}
	}
}

// checkStep checks a step of the supervisor's log.
func (j *runJudge) checkStep(before supervisor.State, f activation.Fact, out activation.Stepped) {
	after := &j.population.super.shadow.super.State
	if out.Err != nil {
		j.reach.hit(placeUndecoded)
		return
	}
	j.judges.policy.noteFact(j.population, f)
	j.judges.models.noteFact(&before, f)
	j.judges.contexts.noteFact(&before, f, out)
	j.judges.backlog.noteFact(&before, after, f, out)
	j.judges.narrowed.noteFact(&before, f, out)
	j.judges.budget.noteOthers(&before, f)
	j.judges.budget.checkPool(&before, after, f)
	j.judges.budget.checkParked(after)
	j.judges.budget.dropWaiting(after, f)
	j.judges.budget.checkSubtrees(&before, after, f)
	j.judges.budget.noteRequest(&before, after, f, out)
	switch from := spec.ID(f.From.Agent()); f.Kind {
	case "return_allowance":
		j.judges.budget.noteReturn(&before, after, from, decodeFact[agent.ReturnAllowance](j.population, f))
	case "finish":
		j.judges.budget.checkFinish(&before, after, from)
	}
	for _, t := range out.Messages {
		switch t.Kind {
		case "granted":
			j.judges.budget.checkGrant(&before, after, t)
			j.judges.budget.checkOrder(t)
		case "budget_frozen":
			j.judges.budget.notePaused(after, spec.ID(t.To.Agent()))
		case "allowance_recalled":
			j.judges.budget.noteRecall(t)
		case "denied":
			j.judges.budget.checkOrder(t)
		case "stop_vetoed", "stop_allowed":
			j.judges.tree.checkVetoes(t)
			j.judges.policy.checkVerdict(after, f, t)
		case "submitted":
			id := spec.ID(t.To.Agent())
			if after.Cancel != nil || before.Cancel != nil {
				j.fail(nothingAfterCancel, "the child %s begins after the cancel", id)
			}
			j.judges.tree.checkSpawn(after, id)
			j.judges.tree.checkRights(after, id, t)
			j.judges.models.checkTask(after, t)
			j.judges.contexts.checkTask(t)
			j.judges.narrowed.checkTask(t)
			j.judges.tree.checkHistory(after, t, out.Messages)
		}
	}
	j.judges.budget.checkQueue(after)
	j.judges.budget.checkRecalls(after, f)
	j.judges.tree.checkEnds(&before, after, f, out)
	j.judges.messages.checkMessages(&before, after, f, out)
	for _, effect := range out.Effects {
		if _, ok := effect.(supervisor.Publish); ok {
			j.over++
		}
	}
	if before.Phase == supervisor.Over && after.Phase != supervisor.Over {
		j.fail(runsEnd, "the run was over and is %s", after.Phase)
	}
	j.checkFinalResult(&before, after, f)
	j.checkParkClock(&before, after)
	j.judges.coverage.noteSupervisorStep(&before, after, f, out)
}

// checkFinalResult checks that the result of a run that is over stays what it was: it was published. In the log of one
// agent of a run, the last entry has what the other agents have spent. A run that was halted because a log is damaged
// is over before its agents are. The progress of a cancel goes on: an orphan that reports its end later has stopped.
func (j *runJudge) checkFinalResult(before, after *supervisor.State, f activation.Fact) {
	if before.Phase != supervisor.Over || before.Outcome.Reason == spec.LogDamaged || f.Kind == (supervisor.OthersUse{}).Kind() {
		return
	}
	was, is := before.Result(), after.Result()
	if was.Cancel != nil && is.Cancel != nil && is.Cancel.Stopped >= was.Cancel.Stopped {
		c := *is.Cancel
		c.Stopped, c.Pending, c.Orphans, c.Text, c.TookMS = was.Cancel.Stopped, was.Cancel.Pending, was.Cancel.Orphans, was.Cancel.Text, was.Cancel.TookMS
		is.Cancel = &c
	}
	if !reflect.DeepEqual(was, is) {
		j.fail(runsEnd, "the run is over, and %s changes its result: it was %+v and is %+v", f.Kind, was, is)
	}
}

// checkParkClock checks that a run ends as unanswered only if it has waited for people alone for its whole time.
func (j *runJudge) checkParkClock(before, after *supervisor.State) {
	if before.Cancel == nil && after.Cancel != nil && after.Cancel.As == spec.Unanswered && (!j.parked || after.Now-j.parkedAt < after.Run.ParkMS) {
		j.fail(parkedRunsExpire, "the run ends as unanswered at %d; parked: %v, since %d, at most %d ms", after.Now, j.parked, j.parkedAt, after.Run.ParkMS)
	}
	asks := false
	after.Members(func(m supervisor.Member) { asks = asks || m.Query != nil && !m.Done })
	parked := asks && after.Pool.Held.Zero() && after.Waiting() == 0
	if parked && !j.parked {
		j.parkedAt = after.Now
	}
	j.parked = parked
}
