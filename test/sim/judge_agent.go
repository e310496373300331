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

// watchedAgent is the agent that judges watch. They read its log by themselves: for the loop
// options they do not trust the state of the agent.
type watchedAgent struct {
	*environment
	population *population
	judges     *judges
	actor      *actor
}

// agentJudge checks the steps of one agent, with a judge for each family of promises.
type agentJudge struct {
	*watchedAgent
	calls      *callJudge
	permits    *permissionJudge
	goals      *goalJudge
	prompts    *promptJudge
	breakers   *breakerJudge
	clock      *clockJudge
	pauses     *pauseJudge
	background *backgroundJudge
	models     *modelJudge
	contexts   *contextJudge
	resumes    int // activations since Submitted
	forks      *forkJudge
	steering   *steeringJudge
	denied     bool // a person ended the loop because of configuration drift
}

func newAgentJudge(p *population, a *actor) *agentJudge {
	s := &watchedAgent{environment: p.environment, population: p, judges: p.judges, actor: a}
	breakers, prompts, handoffs := &breakerJudge{watchedAgent: s, fails: map[string]int{}}, &promptJudge{watchedAgent: s}, &handoffJudge{watchedAgent: s}
	permits := &permissionJudge{watchedAgent: s, asked: map[string]askedCall{}, people: map[string]map[string]bool{}}
	permits.taint = &taintJudge{watchedAgent: s, answers: map[string]bool{}}
	calls := newCallJudge(s, breakers, permits)
	return &agentJudge{
		watchedAgent: s,
		calls:        calls,
		permits:      permits,
		prompts:      prompts,
		breakers:     breakers,
		goals:        &goalJudge{watchedAgent: s, calls: calls, handoffs: handoffs},
		clock:        &clockJudge{watchedAgent: s},
		pauses:       &pauseJudge{watchedAgent: s, prompts: prompts},
		background:   &backgroundJudge{watchedAgent: s, away: map[string]spec.ID{}, handoffs: handoffs},
		models:       &modelJudge{watchedAgent: s},
		contexts:     &contextJudge{watchedAgent: s},
		forks:        &forkJudge{watchedAgent: s},
		steering:     &steeringJudge{watchedAgent: s},
	}
}

func (j *agentJudge) checkFinal() {
	a := j.actor
	st := a.shadow.agent.State
	if a.damaged {
		j.checkDamagedEnd()
		return
	}
	if err := strictHistory(st.History); err != nil {
		j.fail(transcriptGrows, "the record of %s is not well formed: %v", a.id, err)
	}
	spent := j.population.super.shadow.super.State.Pool.Account(string(a.id)).Spent.Tokens
	if bill := j.judges.budget.bills[a.id]; bill > spent && !j.population.super.damaged {
		j.fail(billsAreCharged, "%s: the provider counted %d tokens, the pool %d", a.id, bill, spent)
	}
	for _, t := range a.shadow.emitted {
		if !t.landed && !j.population.isDamaged(t.to) {
			j.fail(messagesAreAsLogged, "%s(%d,%d) of %s to %s is lost", t.kind, t.n, t.i, a.id, t.to)
		}
	}
}

// checkLogVerified checks that no side effect begins before the supervisor has compared the log in
// the same activation, and that none begins from a log that is shorter than the supervisor has read.
func (j *agentJudge) checkLogVerified(sh *shell, call string, class model.Class) {
	a := sh.actor
	w := &a.shadow
	st := &j.actor.shadow.agent.State
	recorded := class == model.Effect || class == model.Irreversible
	current := st.Activation == sh.start // the log has no later claim that it has not read
	if recorded && current && st.LogVerification.Answered != st.Activation {
		j.fail(logVerifiedFirst, "%s: call %s begins in activation %q, and the supervisor compared the log for %q", a.id, call, st.Activation, st.LogVerification.Answered)
	}
	if class == model.Read || !a.damaged || j.population.super.damaged || w.rotten {
		return
	}
	j.reach.hit(placeVerifiedAfterCut)
	if w.tooShort() || st.Reservation < w.granted {
		j.fail(logVerifiedFirst, "%s: call %s begins, and the log lost its tail (cut to %d, heard of %d; %d reservations, granted %d)",
			a.id, call, w.cut, w.heard, st.Reservation, w.granted)
	}
}

// checkLogQuestion checks that an agent asks at most once in an activation for a verification of its log.
func (j *agentJudge) checkLogQuestion(before agent.State, out activation.Stepped) {
	a := j.actor
	asked := before.LogVerification.Asked
	for _, letter := range out.Messages {
		if letter.Kind != (agent.VerifyLog{}).Kind() {
			continue
		}
		var v agent.VerifyLog
		if err := mailbox.Unmarshal(letter.Body, &v); err != nil {
			j.fail(factsAreReadable, "%s: a question to the supervisor does not decode: %v", a.id, err)
			return
		}
		if v.Activation == asked {
			j.fail(logVerifiedFirst, "%s asks twice in activation %s whether its log is whole", a.id, v.Activation)
		}
		asked = v.Activation
	}
}

// checkDamagedEnd checks that a log whose damage could be noticed ends log_damaged.
func (j *agentJudge) checkDamagedEnd() {
	a := j.actor
	w := &a.shadow
	known := w.rotten || w.tooShort()
	if known && !w.alarmed && !w.done {
		j.fail(damageIsNoticed, "the log of %s was spoiled (rotten %v, cut to %d, heard of %d) and nobody noticed", a.id, w.rotten, w.cut, w.heard)
	}
	m, _ := j.population.super.shadow.super.State.Member(a.id)
	st := j.actor.shadow.agent.State
	halted := st.Outcome.Reason == spec.LogDamaged || m.Outcome.Reason == spec.LogDamaged
	canceled := st.Cancel != nil && st.Cancel.As == ""
	// A person ended the loop, and the log of the run lost what the supervisor knew of the damage.
	super := j.population.super
	denied := j.denied && st.Outcome.Reason == spec.ResumeUnsafe && st.Cancel != nil && st.Cancel.As == spec.ResumeUnsafe &&
		super.damaged && w.alarmedAt > super.shadow.cut
	if w.alarmed && !w.late && !halted && !canceled && !denied {
		j.fail(damageIsNoticed, "the log of %s is known to be damaged, and it ends %s", a.id, st.Outcome.Reason)
	}
}

// checkStep checks a step of an agent's log, whether or not a shell will carry it out.
func (j *agentJudge) checkStep(before agent.State, f activation.Fact, out activation.Stepped) {
	a, after := j.actor, &j.actor.shadow.agent.State
	if out.Err != nil {
		j.reach.hit(placeUndecoded)
		return
	}
	switch f.Kind {
	case "started":
		e := decodeFact[agent.Started](j.population, f)
		if e.Activation == before.Activation {
			j.judges.effects.started[callKey{a.id, e.Call, e.Attempt}] = true
		}
	case "answered":
		e := decodeFact[agent.Answered](j.population, f)
		if asksPerson(&before) && e.Query == before.Suspended.Question.Query && e.Decision == "approve" && j.permits.isAccepted(e, after.Now) {
			i := strings.LastIndexByte(e.Query, '.')
			attempt := 0
			for _, c := range before.Calls {
				if c.ID == e.Query[:i] {
					attempt = c.Attempt
				}
			}
			j.judges.effects.approved[callKey{a.id, e.Query[:i], attempt + 1}] = true
		}
	case "returned":
		j.judges.tree.checkChildAnswer(a, before, after, f)
		j.calls.checkResult(&before, after, decodeFact[agent.Returned](j.population, f))
	case "woke":
		j.clock.checkTimer(&before, after)
	case "allowance_recalled":
		j.checkRecalled(&before, f, out)
	}
	var decision spec.Decision
	if f.Kind == "answered" {
		decision = decodeFact[agent.Answered](j.population, f).Decision
	}
	if decision == spec.Deny && before.Suspended.Why == agent.AwaitsDriftAnswer && after.Suspended.Why != agent.AwaitsDriftAnswer {
		j.denied = true
	}
	j.forks.checkStep(&before, f, out)
	j.judges.drift.noteApproval(a, &before, after, f.Kind, decision)
	for _, effect := range out.Effects {
		j.checkEffect(before, after, effect)
	}
	j.checkLogQuestion(before, out)
	j.checkLoop(&before, after, f, out)
	if after.Phase == agent.Done && before.Phase != agent.Done {
		j.goals.checkEnd(after)
	}
	if after.Phase == agent.Done && before.Phase != agent.Done && len(after.Calls) > 0 && !a.damaged {
		j.fail(completedMeansDone, "%s is done with open calls", a.id)
	}
	j.judges.coverage.noteAgentStep(&before, after, f)
}

// checkEffect checks that the log allows the effects that it requests.
func (j *agentJudge) checkEffect(before agent.State, after *agent.State, effect any) {
	a := j.actor
	switch e := effect.(type) {
	case agent.CallModel, agent.Begin, agent.CallTool:
		if after.Cancel != nil || before.Phase == agent.Done {
			j.fail(nothingAfterCancel, "%s: %T after the cancel", a.id, effect)
		}
		if call, ok := effect.(agent.CallTool); ok {
			j.checkParallel(after, call)
		}
	case agent.Arm:
		if e.Due <= 0 {
			j.fail(timersCount, "%s: timer %s without a time", a.id, e.Timer)
		}
	}
}

// checkParallel checks that a call that must run alone does so, and that no more calls run at once than allowed.
func (j *agentJudge) checkParallel(after *agent.State, e agent.CallTool) {
	a := j.actor
	running, alone := 0, false
	for _, c := range after.Calls {
		if (c.Stage == agent.Running || c.Stage == agent.Starting) && c.Child == "" {
			running++
		}
		if c.ID == e.Call {
			alone = c.Class != "read"
		}
	}
	if alone && running > 1 {
		j.fail(sideEffectsRunAlone, "%s: %s begins beside other calls", a.id, e.Name)
	}
	if running > after.Task.Limits.Parallel {
		j.fail(sideEffectsRunAlone, "%s: %d tools at once", a.id, running)
	}
}

// Bounds that the judge holds the loop to.
const (
	tooLongMax = 2 // prompts of turns that a provider refuses as too long: one compaction, then the end
	triesMax   = 3 // retries of a call
)

// checkLoop checks the promises of the loop options.
func (j *agentJudge) checkLoop(before, after *agent.State, f activation.Fact, out activation.Stepped) {
	if j.actor.damaged {
		return
	}
	j.checkTranscript(before, after)
	j.checkLimits(before, after, f)
	j.pauses.checkRefusals(before, after, f)
	if f.Kind == "resumed" && isPaused(after) && !slices.ContainsFunc(out.Effects, func(e any) bool { _, ok := e.(agent.AwaitThrottle); return ok }) {
		j.fail(throttlesAreObeyed, "%s has waited at the gate of its model, and its next activation does not", j.actor.id)
	}
	j.permits.noteFact(before, after, f)
	j.models.noteFact(before, f)
	j.contexts.noteFact(before, after, f)
	j.noteFact(before, after, f)
	j.permits.noteQuestion(after, out)
	j.permits.taint.checkMessages(out)
	j.prompts.checkCompaction(before, after)
	j.background.checkBackground(before, after, f, out)
	j.steering.checkStep(before, after, f, out)
	for _, effect := range out.Effects {
		j.calls.noteEffect(after, effect)
		switch e := effect.(type) {
		case agent.CallModel:
			j.models.checkRequest(after, e)
			j.contexts.checkRequest(after, e)
			j.prompts.checkRequest(after, e)
		case agent.Begin:
			j.calls.checkBegin(after, e.Call)
		case agent.CallTool:
			j.calls.checkBegin(after, e.Call)
		}
	}
	for _, t := range out.Messages {
		switch t.Kind {
		case "delegate":
			var d agent.Delegate
			if err := mailbox.Unmarshal(t.Body, &d); err != nil {
				j.fail(factsAreReadable, "delegate: %v", err)
			}
			j.calls.checkBegin(after, d.Call)
		case "propose_stop":
			j.goals.blocks = 0
		}
	}
	j.checkWaiting(before, after, out)
}

// checkTranscript checks that the transcript only grows; a message in it can only be retracted.
func (j *agentJudge) checkTranscript(before, after *agent.State) {
	a := j.actor
	old, now := before.History, after.History
	if len(now) < len(old) {
		j.fail(transcriptGrows, "%s: the transcript shrinks from %d to %d messages", a.id, len(old), len(now))
	}
	if len(old) == 0 || &old[0] == &now[0] {
		return
	}
	for i := range old {
		was, is := old[i], now[i]
		if was.Tombstone && !is.Tombstone {
			j.fail(transcriptGrows, "%s: message %d is no tombstone any more", a.id, i)
		}
		was.Tombstone, was.Interrupted = is.Tombstone, is.Interrupted
		if string(canonMessage(nil, &was)) != string(canonMessage(nil, &is)) {
			j.fail(transcriptGrows, "%s: message %d of the transcript changes", a.id, i)
		}
	}
}

// checkLimits checks that the counters stay within the limits of the task.
func (j *agentJudge) checkLimits(before, after *agent.State, f activation.Fact) {
	a, l := j.actor, after.Task.Limits
	if after.Phase == "" {
		return
	}
	switch {
	case after.Turn > l.Turns:
		j.fail(loopLimitsHold, "%s: %d turns, %d are allowed", a.id, after.Turn, l.Turns)
	case after.Cuts > l.Cuts && after.Phase != agent.Done:
		j.fail(loopLimitsHold, "%s goes on after %d cut replies in a row", a.id, after.Cuts)
	case after.Useless >= l.Malformed && after.Phase != agent.Done:
		j.fail(loopLimitsHold, "%s goes on after %d useless replies in a row", a.id, after.Useless)
	case after.Retries > l.Retries:
		j.fail(loopLimitsHold, "%s: %d retries of a model call, %d are allowed", a.id, after.Retries, l.Retries)
	case after.Route < before.Route && after.Task.Model.Name == before.Task.Model.Name || after.Route > spec.FallbacksMax:
		j.fail(loopLimitsHold, "%s goes from fallback %d to %d", a.id, before.Route, after.Route)
	}
	for _, c := range after.Calls {
		if c.Tries > min(triesMax, after.Task.LoopOptions.ToolRetries) {
			j.fail(loopLimitsHold, "%s: call %s failed in passing %d times, and is run again", a.id, c.ID, c.Tries)
		}
		// Beyond the retries, only a crash or a person lets a call begin again.
		if most := 1 + c.Tries + 2*j.resumes; c.Attempt > most {
			j.fail(loopLimitsHold, "%s: call %s has its %dth attempt after %d passing failures in %d activations", a.id, c.ID, c.Attempt, c.Tries, j.resumes+1)
		}
	}
	if f.Kind == "resumed" {
		j.resumes++
		if after.Node != before.Node {
			clear(j.calls.passed)
		}
	}
	j.clock.advanceClock(before, after, f)
	if after.Transition != before.Transition || f.Kind == "hooked" || f.Kind == "replied" {
		j.goals.countTurn(before, after)
	}
}

// noteFact records what a fact permits afterwards.
func (j *agentJudge) noteFact(before, after *agent.State, f activation.Fact) {
	switch f.Kind {
	case "hooked":
		j.calls.noteAnswers(before, after, decodeFact[agent.Hooked](j.population, f))
	case "answered":
		e := decodeFact[agent.Answered](j.population, f)
		if q := before.Suspended.Question; asksPerson(before) && q.Query == e.Query && after.Suspended.Question.Query != q.Query {
			j.calls.noteApproval(before, after, j.permits.inTime(e, after.Now))
		}
	case "failed":
		e := decodeFact[agent.Failed](j.population, f)
		if before.Phase == agent.Thinking && e.Reservation == before.Reservation && before.Purpose == agent.ForTurn && e.Class == model.TooLong {
			if j.prompts.tooLong++; j.prompts.tooLong > tooLongMax {
				j.fail(loopLimitsHold, "%s: %d prompts are too long, and it tries again and again", j.actor.id, j.prompts.tooLong)
			}
		}
	case "replied":
		e := decodeFact[agent.Replied](j.population, f)
		if before.Phase == agent.Thinking && e.Reservation == before.Reservation && before.Purpose == agent.ForTurn {
			j.breakers.checkForbidden(before, after, e.Reply.Message.Calls)
			j.breakers.checkForced(before, after)
		}
	}
	if n := len(before.History); len(after.History) > n && len(before.Calls) > 0 && len(after.History[n].Results) > 0 {
		j.breakers.checkFailing(before, after, after.History[n].Results)
	}
	if len(after.PendingSteers) < len(before.PendingSteers) { // a user has given direction, also about the results of this step
		clear(j.breakers.fails)
	}
}
