package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/model"
)

// executor has the work of shells in the world under way: calls of models and tools, and hooks.
type executor struct {
	*environment
	processes *processes
	throttles *throttles
	model     *fakeModel
	hooks     *fakeHooks
	budget    *budgetJudge
	effects   *effectJudge
	jobs      []*job
}

// runHooks begins hooks. Each activation asks at most once at a hook point.
func (ex *executor) runHooks(sh *shell, e agent.RunHooks) {
	a := sh.actor
	ex.traceLine("hooks of %s at %s: %s", a.id, e.Point, e.ID)
	if e.ID == "" || len(e.Hooks) == 0 {
		ex.fail(hooksDecide, "%s runs no hooks at %s, as %q", a.id, e.Point, e.ID)
	}
	key := gateKey{sh.start, e.ID}
	if ex.effects.gates[key]++; ex.effects.gates[key] > 1 && !a.damaged {
		ex.fail(hooksDecide, "%s asks the hooks of %s twice in activation %s", a.id, e.ID, sh.start)
	}
	for _, h := range e.Hooks {
		if h.Point != e.Point {
			ex.fail(hooksDecide, "%s runs the hook %s of %s at %s", a.id, h.Name, h.Point, e.Point)
		}
	}
	ex.jobs = append(ex.jobs, &job{shell: sh, key: activation.HookKey(e.ID), hooks: &e})
}

// finishHooks posts the answers of hooks. A live process always gets an
// answer from them: a hook that crashes or hangs yields its default.
func (ex *executor) finishHooks(r *job) {
	if r.shell.logReader().Phase == activation.Superseded || r.aborted && ex.percent(50) {
		return
	}
	e := r.hooks
	f := agent.Hooked{ID: e.ID, Point: e.Point}
	for _, h := range e.Hooks {
		f.Answers = append(f.Answers, ex.hooks.drawAnswer(e, h))
	}
	if ex.permille(10) {
		f.Answers = nil
	}
	for _, a := range f.Answers {
		ex.traceLine("hook %s of %s answers %s: %q, %.20q, args %q, %d messages, failed %q", a.Hook, r.shell.actor.id, e.ID, a.Decision, a.Text, a.Args,
			len(a.Messages), a.Failed)
	}
	ex.processes.postResult(r.shell, "hooked", r.key, f)
	if ex.percent(3) { // and again, with another answer
		f.Answers = []spec.HookAnswer{ex.hooks.drawAnswer(e, e.Hooks[0])}
		ex.processes.postResult(r.shell, "hooked", r.key+".again", f)
	}
}

// giveUpJobs ends work whose result no shell will receive.
func (ex *executor) giveUpJobs(which func(*job) bool) {
	var lost []*job
	ex.jobs = slices.DeleteFunc(ex.jobs, func(r *job) bool {
		if !which(r) {
			return false
		}
		if r.reservation != 0 {
			ex.budget.chargeUnread(r)
			lost = append(lost, r)
		}
		return true
	})
	ex.throttles.reportLost(lost)
}

// job is a model call (reservation > 0) or a tool call under way in one process.
type job struct {
	shell       *shell
	key         string // of the work
	reservation int
	request     model.Request
	model       string // "provider/model"
	hooks       *agent.RunHooks
	call        string
	attempt     int
	name        string
	aborted     bool
}

// isFirstOfRoot reports whether the root has only just received its task. It mostly asks for help then.
func (r *job) isFirstOfRoot() bool {
	return r.shell.actor.id == spec.Root && len(r.request.Messages) == 1
}

// callModel asks the throttle of the model to admit an attempt.
func (ex *executor) callModel(sh *shell, e agent.CallModel) {
	ex.effects.checkMayBegin(sh, "CallModel")
	ex.throttles.requestAdmission(&throttleRequest{shell: sh, model: e.Model, call: &e})
}

// sendRequest begins an attempt, if every promise about it holds.
func (ex *executor) sendRequest(sh *shell, e agent.CallModel) {
	a := sh.actor
	ex.traceLine("model call %s reservation %d, %d messages", a.id, e.Reservation, len(e.Request.Messages))
	key := reservationKey{a.id, e.Reservation}
	if ex.budget.called[key]++; ex.budget.called[key] > 1 && !a.damaged {
		ex.fail(reservedFirst, "%s: reservation %d is used by two model calls", a.id, e.Reservation)
	}
	if !a.damaged {
		ex.budget.checkReservation(sh, key, e)
		if err := wellFormed(e.Request.Messages); err != nil {
			ex.fail(transcriptGrows, "%s: a provider refuses the request under reservation %d: %v", a.id, e.Reservation, err)
		}
	}
	ex.jobs = append(ex.jobs, &job{shell: sh, key: activation.ModelKey(e.Reservation), reservation: e.Reservation, request: e.Request, model: e.Model})
}

// callTool begins a tool, if every promise about it holds.
func (ex *executor) callTool(sh *shell, e agent.CallTool) {
	a := sh.actor
	ex.traceLine("tool %s of %s: call %s attempt %d", e.Name, a.id, e.Call, e.Attempt)
	ex.effects.checkMayBegin(sh, "CallTool "+e.Call)
	i := slices.IndexFunc(tools, func(t model.ToolSpec) bool { return t.Name == e.Name })
	if i < 0 || e.Name == "delegate" || e.Name == handoffTool || e.Name == sendTool || e.Name == "ask_human" || e.Name == declareTool || e.Name == journalTool && ex.opened.LoopOptions.Journal {
		ex.fail(callsAreValid, "%s: the unknown tool %q runs", a.id, e.Name)
	}
	var args map[string]any
	err := json.Unmarshal([]byte(e.Args), &args)
	if _, x := args["x"]; err != nil || !x && strings.Contains(tools[i].Schema, "required") || strings.Contains(e.Args, cutMark) {
		ex.fail(callsAreValid, "%s: %s runs with arguments %q", a.id, e.Name, e.Args)
	}
	key := callKey{a.id, e.Call, e.Attempt}
	if ex.effects.begun[key]++; ex.effects.begun[key] > 1 && !a.damaged {
		ex.fail(callsBeginOnce, "%s: call %s attempt %d (%s) is begun twice", a.id, e.Call, e.Attempt, e.Name)
	}
	class := tools[i].Class
	if (class == model.Effect || class == model.Irreversible) && e.Attempt > 1 && !a.damaged && !ex.effects.approved[key] {
		ex.fail(callsBeginOnce, "%s: call %s (%s) is begun again, attempt %d, and nobody said so", a.id, e.Call, e.Name, e.Attempt)
	}
	if ex.effects.originals[callKey{a.id, e.Call, e.Attempt - 1}] && !ex.effects.approved[key] {
		ex.fail(forksRepeatNothing, "%s: call %s (%s) is begun again, attempt %d, which the original of the fork had begun, and nobody said so", a.id, e.Call, e.Name, e.Attempt)
	}
	if class != model.Read && !a.damaged && !ex.effects.started[key] {
		ex.fail(callsBeginOnce, "%s: call %s attempt %d (%s) begins without its Started in the log", a.id, e.Call, e.Attempt, e.Name)
	}
	a.shadow.judge.checkLogVerified(sh, e.Call, class)
	ex.jobs = append(ex.jobs, &job{shell: sh, key: e.Call, call: e.Call, attempt: e.Attempt, name: e.Name})
	if class != model.Read && class != model.Idempotent && ex.isOn(faultTwoHolders) && !ex.faultsEnded && len(a.shells) < shellsMax && ex.percent(2*raceOdds) {
		ex.processes.takeOver(a) // the next activation does not know its outcome
	}
}

// finishJob ends a model call or a tool and posts its result.
func (ex *executor) finishJob(r *job) {
	ex.jobs = slices.DeleteFunc(ex.jobs, func(x *job) bool { return x == r })
	sh := r.shell
	switch {
	case r.reservation != 0:
		ex.finishModel(r)
		return
	case r.hooks != nil:
		ex.finishHooks(r)
		return
	}
	f := ex.drawResult(r)
	if r.aborted {
		f.Text, f.Error, f.Killed = "killed while running", true, true
	}
	ex.traceLine("tool call %s.%d of %s ends", r.call, r.attempt, sh.actor.id)
	ex.processes.postResult(sh, "returned", r.key, f)
}

// drawResult draws the result of a tool. If the model is hostile, so are the tools.
func (ex *executor) drawResult(r *job) agent.Returned {
	f := agent.Returned{Call: r.call, Attempt: r.attempt, Text: "result " + itoa(ex.IntN(1000)), Error: ex.percent(15)}
	f.Transient = f.Error && ex.percent(60)
	if ex.isOn(faultGoals) && ex.percent(40) {
		f.Text = strings.Repeat("z ", 150) + proof + strings.Repeat(" z", 150)
	}
	if !ex.isOn(faultHostile) {
		return f
	}
	switch ex.IntN(8) {
	case 0:
		f.Text = ""
	case 1:
		f.Text = strings.Repeat("\xff", ex.between(1, 400))
	case 2:
		f.Text, f.Error, f.Transient = "down", true, true
	case 3:
		f.Text, f.Ref, f.Size = "head … tail", strings.Repeat("0", 64), 1<<20
	case 4, 5:
		f.Text = "the same"
	}
	return f
}

func (ex *executor) finishModel(r *job) {
	sh := r.shell
	if sh.logReader().Phase == activation.Superseded {
		ex.budget.chargeUnread(r)
		ex.throttles.reportAnswer(r, throttle.Neutral, 0)
		return
	}
	key := reservationKey{sh.actor.id, r.reservation}
	answer, fail := ex.model.answerRequest(r)
	reply, dropped := activation.TruncateReply(answer)
	as, after := verdictOf(fail)
	defer ex.throttles.reportAnswer(r, as, after)
	ex.traceLine("model answers %s reservation %d: %+v %+v", key.who, key.reservation, reply, fail)
	if fail != nil && fail.Unbilled {
		ex.budget.noteCost(key, 0)
		fail.Reservation = r.reservation
		ex.processes.postResult(sh, "failed", r.key, *fail)
		return
	}
	if reply.UsageKnown {
		ex.budget.noteCost(key, min(reply.Usage.Total(), promptTokens(r.request)+r.request.MaxOutput))
		// What is beyond the reservation is known only if the reply is ever read.
		ex.budget.bills[key.who] += min(reply.Usage.Total(), promptTokens(r.request)+r.request.MaxOutput)
	} else {
		ex.budget.chargeUnread(r)
	}
	if fail != nil {
		fail.Reservation, fail.Reply = r.reservation, reply
		ex.processes.postResult(sh, "failed", r.key, *fail)
		return
	}
	f := agent.Replied{Reservation: r.reservation, Reply: reply, Dropped: dropped}
	if sh.state.Agent.State.Counts() && ex.percent(90) {
		f.Tokens = messageTokens(reply.Message)
	}
	ex.processes.postResult(sh, "replied", r.key, f)
}
