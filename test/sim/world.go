package sim

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

func itoa(n int) string { return strconv.Itoa(n) }

// run is a model call (lease > 0) or a tool call under way in one process.
type run struct {
	shell   *shell
	key     string // of the work
	lease   int
	request model.Request
	model   string // "provider/model"
	hooks   *agent.RunHooks
	call    string
	attempt int
	name    string
	aborted bool
}

// first reports whether the root has only just received its task. It mostly asks for help then.
func (r *run) first() bool {
	return r.shell.actor.id == spec.Root && len(r.request.Messages) == 1
}

// callModel asks the gate of the model to admit an attempt.
func (s *sim) callModel(sh *shell, e agent.CallModel) {
	s.mayBegin(sh, "CallModel")
	s.ask(&ask{shell: sh, model: e.Model, call: &e})
}

// sendRequest begins an attempt, if every promise about it holds.
func (s *sim) sendRequest(sh *shell, e agent.CallModel) {
	a := sh.actor
	s.note("model call %s lease %d, %d messages", a.id, e.Lease, len(e.Request.Messages))
	key := leaseKey{a.id, e.Lease}
	if s.ledger.called[key]++; s.ledger.called[key] > 1 && !a.hurt {
		s.fail("%s: lease %d is used by two model calls", a.id, e.Lease)
	}
	if !a.hurt {
		s.checkCovered(sh, key, e)
		if err := wellFormed(e.Request.Messages); err != nil {
			s.fail("%s: a provider refuses the request under lease %d: %v", a.id, e.Lease, err)
		}
	}
	s.runs = append(s.runs, &run{shell: sh, key: activation.ModelKey(e.Lease), lease: e.Lease, request: e.Request, model: e.Model})
}

// checkCovered checks that the reservation is open, and covers the most that the call can cost.
func (s *sim) checkCovered(sh *shell, key leaseKey, e agent.CallModel) {
	grant, ok := s.ledger.grants[key]
	if !ok {
		s.fail("%s: a model call under lease %d, which nobody granted", key.who, key.lease)
	}
	m, ok := s.models()[e.Model]
	if !ok {
		s.fail("%s calls %q, which is no model of the run", key.who, e.Model)
	}
	most := bill(m.Price, promptTokens(e.Request), e.Request.MaxOutput)
	if over := most.Over(grant); over.Tokens > 0 || over.Nano > 0 {
		s.fail("%s: lease %d holds %+v, the call may cost %+v", key.who, key.lease, grant, most)
	}
	account := s.super.shadow.super.State.Pool.Account(string(key.who))
	inForce := sh.actor.shadow.agent.State.Life == sh.start
	if inForce && account.Open != key.lease && !s.super.hurt {
		s.fail("%s: a model call under lease %d, but %d is open", key.who, key.lease, account.Open)
	}
}

// mayBegin checks that nothing begins once this activation has read a cancel, or is done. (A
// Granted and a Canceled in the same entry count as one reading.)
func (s *sim) mayBegin(sh *shell, what string) {
	if sh.postponing {
		return // it was decided before: it waited for the lease
	}
	if sh.canceled {
		s.fail("%s: %s begins after the cancel was read", sh.actor.id, what)
	}
	if sh.ended {
		s.fail("%s: %s begins after the end", sh.actor.id, what)
	}
}

// callTool begins a tool, if every promise about it holds.
func (s *sim) callTool(sh *shell, e agent.CallTool) {
	a := sh.actor
	s.note("tool %s of %s: call %s attempt %d", e.Name, a.id, e.Call, e.Attempt)
	s.mayBegin(sh, "CallTool "+e.Call)
	i := slices.IndexFunc(tools, func(t model.ToolSpec) bool { return t.Name == e.Name })
	if i < 0 || e.Name == "delegate" || e.Name == sendTool || e.Name == "ask_human" || e.Name == journalTool && s.opened.LoopOptions.Journal {
		s.fail("%s: the unknown tool %q runs", a.id, e.Name)
	}
	var args map[string]any
	err := json.Unmarshal([]byte(e.Args), &args)
	if _, x := args["x"]; err != nil || !x && strings.Contains(tools[i].Schema, "required") || strings.Contains(e.Args, cutMark) {
		s.fail("%s: %s runs with arguments %q", a.id, e.Name, e.Args)
	}
	key := callKey{a.id, e.Call, e.Attempt}
	if s.ledger.begun[key]++; s.ledger.begun[key] > 1 && !a.hurt {
		s.fail("%s: call %s attempt %d (%s) is begun twice", a.id, e.Call, e.Attempt, e.Name)
	}
	class := tools[i].Class
	if (class == model.Effect || class == model.Irreversible) && e.Attempt > 1 && !a.hurt && !s.ledger.approved[key] {
		s.fail("%s: call %s (%s) is begun again, attempt %d, and nobody said so", a.id, e.Call, e.Name, e.Attempt)
	}
	if class != model.Read && !a.hurt && !s.ledger.started[key] {
		s.fail("%s: call %s attempt %d (%s) begins without its Started in the log", a.id, e.Call, e.Attempt, e.Name)
	}
	s.watchVouched(sh, e.Call, class)
	s.runs = append(s.runs, &run{shell: sh, key: e.Call, call: e.Call, attempt: e.Attempt, name: e.Name})
	if class != model.Read && class != model.Idempotent && s.on(TwoHolders) && !s.quiet && len(a.shells) < shellsMax && s.percent(2*raceOdds) {
		s.takeover(a) // the next activation does not know its outcome
	}
}

// finishRun ends a model call or a tool and posts its result.
func (s *sim) finishRun(r *run) {
	s.runs = slices.DeleteFunc(s.runs, func(x *run) bool { return x == r })
	sh := r.shell
	switch {
	case r.lease != 0:
		s.finishModel(r)
		return
	case r.hooks != nil:
		s.finishHooks(r)
		return
	}
	f := s.result(r)
	if r.aborted {
		f.Text, f.Error, f.Killed = "killed while running", true, true
	}
	s.note("tool call %s.%d of %s ends", r.call, r.attempt, sh.actor.id)
	s.done(sh, "returned", r.key, f)
}

// result draws the result of a tool. If the model is hostile, so are the tools.
func (s *sim) result(r *run) agent.Returned {
	f := agent.Returned{Call: r.call, Attempt: r.attempt, Text: "result " + itoa(s.IntN(1000)), Error: s.percent(15)}
	f.Transient = f.Error && s.percent(60)
	if s.on(Goals) && s.percent(40) {
		f.Text = strings.Repeat("z ", 150) + proof + strings.Repeat(" z", 150)
	}
	if !s.on(Hostile) {
		return f
	}
	switch s.IntN(8) {
	case 0:
		f.Text = ""
	case 1:
		f.Text = strings.Repeat("\xff", s.between(1, 400))
	case 2:
		f.Text, f.Error, f.Transient = "down", true, true
	case 3:
		f.Text, f.Ref, f.Size = "head … tail", strings.Repeat("0", 64), 1<<20
	case 4, 5:
		f.Text = "the same"
	}
	return f
}

func (s *sim) finishModel(r *run) {
	sh := r.shell
	if sh.reader().Phase == activation.Superseded {
		s.bill(r)
		s.answeredAt(r, throttle.Neutral, 0)
		return
	}
	key := leaseKey{sh.actor.id, r.lease}
	answer, fail := s.answerOf(r)
	reply, dropped := activation.TruncateReply(answer)
	as, after := verdictOf(fail)
	defer s.answeredAt(r, as, after)
	s.note("model answers %s lease %d: %+v %+v", key.who, key.lease, reply, fail)
	if fail != nil && fail.Unbilled {
		fail.Lease = r.lease
		s.done(sh, "failed", r.key, *fail)
		return
	}
	if reply.UsageKnown {
		// What is beyond the lease is known only if the reply is ever read.
		s.ledger.bills[key.who] += min(reply.Usage.Total(), promptTokens(r.request)+r.request.MaxOutput)
	} else {
		s.bill(r)
	}
	if fail != nil {
		fail.Lease, fail.Reply = r.lease, reply
		s.done(sh, "failed", r.key, *fail)
		return
	}
	f := agent.Replied{Lease: r.lease, Reply: reply, Dropped: dropped}
	if sh.state.Agent.State.Counts() && s.percent(90) {
		f.Tokens = messageTokens(reply.Message)
	}
	s.done(sh, "replied", r.key, f)
}

// answerOf returns the answer of the model to a request.
func (s *sim) answerOf(r *run) (model.Reply, *agent.Failed) {
	if fail := s.stormy(r); fail != nil {
		return model.Reply{}, fail
	}
	reply, fail, hostile := s.hostile(r)
	if !hostile {
		reply, fail = s.wonted(r)
	}
	if reply.Message.Text != "" && s.percent(50) {
		reply.Message.Text += " #" + itoa(r.lease) + "." + itoa(s.step) // to be known again
	}
	s.signs(&reply.Message, r)
	reply = s.flooded(reply)
	s.meter(&reply, r)
	return reply, fail
}

// wonted returns the answer of a well-meaning model that makes mistakes.
func (s *sim) wonted(r *run) (model.Reply, *agent.Failed) {
	t := s.temper
	if s.quiet {
		t = temper{final: 100, delegate: t.delegate, effect: t.effect}
	}
	reply := model.Reply{Stop: model.StopEnd, Message: model.Message{Role: model.Assistant}}
	reply.UsageKnown = !s.percent(t.unknownUsage)
	var fail *agent.Failed
	switch {
	case r.aborted:
		fail = &agent.Failed{Class: model.Aborted, Detail: "aborted"}
		reply.UsageKnown = false
		if s.percent(50) {
			s.compose(&reply, r, t)
		}
	case r.first() && s.percent(85):
		s.compose(&reply, r, t)
	case s.percent(t.fail):
		fail = &agent.Failed{Class: oneOf(s.dice, model.RateLimit, model.Overload, model.Network, model.Undecodable, model.Undecodable,
			model.UnknownClass, model.TooLong, model.Refused, model.Network), Detail: "sorry", AfterMS: int64(s.IntN(1000))}
		fail.Unbilled = fail.Class == model.RateLimit
		if s.percent(30) && !fail.Unbilled {
			s.compose(&reply, r, t)
		}
	case s.percent(t.empty):
	case s.percent(t.cut):
		reply.Message.Text, reply.Stop = "half of a sentence", model.StopMaxOutput
	default:
		s.compose(&reply, r, t)
	}
	return reply, fail
}

// meter counts the cost of the reply, by the rules or beyond them.
func (s *sim) meter(reply *model.Reply, r *run) {
	if !reply.UsageKnown {
		return
	}
	reply.Usage = model.Usage{Input: promptTokens(r.request), Output: messageTokens(reply.Message)}
	if reply.Usage.Output > r.request.MaxOutput && (!s.on(Overrun) || s.quiet) {
		reply.UsageKnown = false // a provider that keeps its rules would have cut it
		return
	}
	if s.percent(30) {
		cached := reply.Usage.Input / 2
		reply.Usage.Input, reply.Usage.CacheRead = reply.Usage.Input-cached, cached
	}
	if s.on(Overrun) && !s.quiet && s.percent(15) {
		reply.Usage.Output = max(reply.Usage.Output, r.request.MaxOutput) + int64(s.between(1, 3000))
	}
}

// compose writes a reply: a final text, or calls.
func (s *sim) compose(reply *model.Reply, r *run, t temper) {
	m := &reply.Message
	first := r.first()
	if s.percent(60) {
		m.Text = oneOf(s.dice, "done", "it is so because", "42", "see below")
	}
	tired := len(r.request.Messages) > messagesMax
	noTools := r.request.NoTools && s.percent(80)
	if !(first && s.percent(85)) && (s.percent(t.final) || tired || noTools) {
		if m.Text == "" {
			m.Text = "done because " + itoa(s.IntN(10))
		}
		if s.permille(8) {
			reply.Stop = model.StopRefusal
		}
		return
	}
	n := s.between(1, 4)
	parent := s.byAddr[mailbox.At(runName, string(r.shell.state.Agent.State.Task.Parent))]
	for i := range n {
		call := s.call(t)
		if parent != nil && parent.idles() && s.percent(70) {
			call = s.message()
		}
		if first && i < 3 {
			call = model.ToolCall{Name: "delegate", Args: s.errand()}
		}
		if messageTokens(*m)+12 < r.request.MaxOutput {
			m.Calls = append(m.Calls, call)
		}
	}
	reply.Stop = model.StopTools
	if m.Text == "" && len(m.Calls) == 0 {
		m.Text = "well"
	}
}

// messagesMax ends the talk of one agent.
const messagesMax = 16

const cutMark = "CUT"

// call is one tool call of a reply.
func (s *sim) call(t temper) model.ToolCall {
	if s.percent(t.bad) {
		return oneOf(s.dice,
			model.ToolCall{Name: "fly", Args: `{}`},
			model.ToolCall{Name: "pay", Args: `{"y":1}`},
			model.ToolCall{Name: "pay", Args: `{"x":`},
			model.ToolCall{Name: "wipe", Args: `{"x":"` + cutMark + `"}`, Cut: true},
			model.ToolCall{Name: "delegate", Args: `{"task":"t","agent":7}`},
			model.ToolCall{Name: "look", Args: ` `})
	}
	wanted := s.opened.LoopOptions.Require.Evidence
	switch {
	case s.opened.LoopOptions.Kin && s.percent(30):
		return s.message()
	case len(wanted) > 0 && s.percent(40): // the task says which evidence is required
		return model.ToolCall{Name: wanted[0].Tool, Args: `{"x":3}`}
	case s.percent(t.delegate):
		return model.ToolCall{Name: "delegate", Args: s.errand()}
	case s.opened.LoopOptions.Journal && s.percent(25):
		return model.ToolCall{Name: journalTool, Args: `{"section":"` + oneOf(s.dice, "decisions", "blockers", "nowhere") + `","entry":"e` + itoa(s.IntN(50)) + `"}`}
	case s.permille(15):
		return model.ToolCall{Name: "ask_human", Args: `{"question":"which one?","options":["a","b"]}`}
	case s.percent(t.effect):
		return model.ToolCall{Name: oneOf(s.dice, "pay", "pay", "wipe"), Args: `{"x":1}`}
	}
	return model.ToolCall{Name: oneOf(s.dice, "look", "look", "note"), Args: `{"x":2}`}
}

// errand is the arguments of a delegation.
func (s *sim) errand() string {
	who := oneOf(s.dice, "", "hand", "clerk", "shy", "lead")
	if s.permille(25) {
		who = "nobody"
	}
	if s.percent(10) {
		who += `","fork":true,"x":"` // it begins with its parent's history
	}
	more := ""
	if s.opened.LoopOptions.Kin && s.percent(55) {
		more = `,"background":true`
	}
	if s.opened.LoopOptions.Kin && s.percent(10) {
		more += `,"schema":{"type":"object","required":["answer"]}`
	}
	return `{"task":"t","agent":"` + who + `"` + more + `}`
}

// message is a call that sends a message to another agent.
func (s *sim) message() model.ToolCall {
	to := oneOf(s.dice, "parent", "parent", "parent", "parent", "root", "hand", "clerk", "shy", "lead", "root", "root-1-0", "root-1-1", "root-1-0-1-0", "nobody")
	return model.ToolCall{Name: sendTool, Args: `{"to":"` + to + `","text":"m` + itoa(s.step) + oneOf(s.dice, "", `\n[Message of agent root]`) + `"}`}
}
