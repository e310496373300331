package sim

import (
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
)

// fakeModel is a well-meaning model that makes mistakes at random, as often as modelHabits says.
type fakeModel struct {
	*environment
	population *population
	throttles  *throttles
	hostile    *hostileModel
}

// floodCalls puts many more calls into a reply than anybody keeps, once in a run.
func (fm *fakeModel) floodCalls(reply model.Reply) model.Reply {
	if fm.flood && len(reply.Message.Calls) > 0 {
		fm.flood = false
		fm.reach.hit(placeFlooded)
		for len(reply.Message.Calls) < floodCalls {
			reply.Message.Calls = append(reply.Message.Calls, reply.Message.Calls[0])
		}
	}
	return reply
}

// signReply puts the model's signature under a reply, which goes back to it and to
// no other.
func (fm *fakeModel) signReply(m *model.Message, r *job) {
	if fm.percent(15) {
		data := `{"thinking":"hm","signature":"` + signedBy + r.model + `"}`
		m.Opaque = append(m.Opaque, model.Opaque{Issuer: r.model, Kind: oneOf(fm.dice, "thinking", "thinking", "order"), Data: []byte(data)})
	}
}

// signedBy begins every signature that the simulator's models issue; who it
// was follows.
const signedBy = "signed by "

// answerRequest returns the answer of the model to a request.
func (fm *fakeModel) answerRequest(r *job) (model.Reply, *agent.Failed) {
	if fail := fm.throttles.refusalOf(r); fail != nil {
		return model.Reply{}, fail
	}
	var fail *agent.Failed
	reply, team := fm.formTeam(r)
	if !team {
		var hostile bool
		if reply, fail, hostile = fm.hostile.answerHostile(r); !hostile {
			reply, fail = fm.answerUsually(r)
		}
	}
	if reply.Message.Text != "" && fm.percent(50) {
		reply.Message.Text += " #" + itoa(r.reservation) + "." + itoa(fm.step) // to be known again
	}
	fm.signReply(&reply.Message, r)
	reply = fm.floodCalls(reply)
	fm.meterUsage(&reply, r)
	return reply, fail
}

// answerUsually returns the answer of a well-meaning model that makes mistakes.
func (fm *fakeModel) answerUsually(r *job) (model.Reply, *agent.Failed) {
	t := fm.temper
	if fm.faultsEnded {
		t = modelHabits{final: 100, delegate: t.delegate, effect: t.effect}
	}
	reply := model.Reply{Stop: model.StopEnd, Message: model.Message{Role: model.Assistant}}
	reply.UsageKnown = !fm.percent(t.unknownUsage)
	var fail *agent.Failed
	switch {
	case r.aborted:
		fail = &agent.Failed{Class: model.Aborted, Detail: "aborted"}
		reply.UsageKnown = false
		if fm.percent(50) {
			fm.composeReply(&reply, r, t)
		}
	case r.isFirstOfRoot() && fm.percent(85):
		fm.composeReply(&reply, r, t)
	case fm.percent(t.fail):
		fail = &agent.Failed{Class: oneOf(fm.dice, model.RateLimit, model.Overload, model.Network, model.Undecodable, model.Undecodable,
			model.UnknownClass, model.TooLong, model.Refused, model.Network), Detail: "sorry", AfterMS: int64(fm.IntN(1000))}
		fail.Unbilled = fail.Class == model.RateLimit
		if fm.percent(30) && !fail.Unbilled {
			fm.composeReply(&reply, r, t)
		}
	case fm.percent(t.empty):
	case fm.percent(t.cut):
		reply.Message.Text, reply.Stop = "half of a sentence", model.StopMaxOutput
	default:
		fm.composeReply(&reply, r, t)
	}
	return reply, fail
}

// meterUsage counts the cost of the reply, by the rules or beyond them.
func (fm *fakeModel) meterUsage(reply *model.Reply, r *job) {
	if !reply.UsageKnown {
		return
	}
	reply.Usage = model.Usage{Input: promptTokens(r.request), Output: messageTokens(reply.Message)}
	if reply.Usage.Output > r.request.MaxOutput && (!fm.isOn(faultOverrun) || fm.faultsEnded) {
		reply.UsageKnown = false // a provider that keeps its rules would have cut it
		return
	}
	if fm.percent(30) {
		cached := reply.Usage.Input / 2
		reply.Usage.Input, reply.Usage.CacheRead = reply.Usage.Input-cached, cached
	}
	if fm.isOn(faultOverrun) && !fm.faultsEnded && fm.percent(15) {
		reply.Usage.Output = max(reply.Usage.Output, r.request.MaxOutput) + int64(fm.between(1, 3000))
	}
}

// composeReply writes a reply: a final text, or calls.
func (fm *fakeModel) composeReply(reply *model.Reply, r *job, t modelHabits) {
	m := &reply.Message
	first := r.isFirstOfRoot()
	if fm.percent(60) {
		m.Text = oneOf(fm.dice, "done", "it is so because", "42", "see below")
	}
	tired := len(r.request.Messages) > messagesMax
	noTools := r.request.NoTools && fm.percent(80)
	if !(first && fm.percent(85)) && (fm.percent(t.final) || tired || noTools) {
		if m.Text == "" {
			m.Text = "done because " + itoa(fm.IntN(10))
		}
		if last := r.request.Messages[max(0, len(r.request.Messages)-1):]; len(last) == 1 && strings.Contains(last[0].Text, doneMark) {
			m.Text = oneOf(fm.dice, doneMark+" ", spec.FailedMark+" ", "") + m.Text
		}
		if fm.permille(8) {
			reply.Stop = model.StopRefusal
		}
		return
	}
	if fm.isOn(faultHandoffs) && fm.percent(handoffOdds(r)) {
		m.Calls, reply.Stop = []model.ToolCall{fm.drawHandoff(r)}, model.StopTools
		return
	}
	if fm.opened.LoopOptions.DeclareFailure && fm.percent(3) {
		m.Calls, reply.Stop = []model.ToolCall{fm.drawDeclaration()}, model.StopTools
		return
	}
	n := fm.between(1, 4)
	parent := fm.population.byAddr[mailbox.At(runName, string(r.shell.state.Agent.State.Task.Parent))]
	for i := range n {
		call := fm.drawCall(t, r)
		if parent != nil && parent.isIdle() && fm.percent(70) {
			call = fm.drawMessage()
		}
		if first && i < 3 {
			call = model.ToolCall{Name: "delegate", Args: fm.drawDelegation()}
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

// drawCall is one tool call of a reply.
func (fm *fakeModel) drawCall(t modelHabits, r *job) model.ToolCall {
	if fm.percent(t.bad) {
		return oneOf(fm.dice,
			model.ToolCall{Name: "fly", Args: `{}`},
			model.ToolCall{Name: "pay", Args: `{"y":1}`},
			model.ToolCall{Name: "pay", Args: `{"x":`},
			model.ToolCall{Name: "wipe", Args: `{"x":"` + cutMark + `"}`, Cut: true},
			model.ToolCall{Name: "delegate", Args: `{"task":"t","agent":7}`},
			model.ToolCall{Name: "look", Args: ` `})
	}
	wanted := fm.opened.LoopOptions.Require.Evidence
	switch {
	case fm.isOn(faultHandoffs) && fm.percent(10): // mostly together with other calls
		return fm.drawHandoff(r)
	case fm.isOn(faultBacklog) && fm.percent(70):
		return fm.drawBacklogCall()
	case fm.isOn(faultBackground) && fm.percent(30):
		return fm.drawMessage()
	case len(wanted) > 0 && fm.percent(40): // the task says which evidence is required
		return model.ToolCall{Name: wanted[0].Tool, Args: `{"x":3}`}
	case fm.percent(t.delegate):
		return model.ToolCall{Name: "delegate", Args: fm.drawDelegation()}
	case fm.opened.LoopOptions.Journal && fm.percent(25):
		return model.ToolCall{Name: journalTool, Args: `{"section":"` + oneOf(fm.dice, "decisions", "blockers", "nowhere") + `","entry":"e` + itoa(fm.IntN(50)) + `"}`}
	case fm.permille(15):
		return model.ToolCall{Name: "ask_human", Args: `{"question":"which one?","options":["a","b"]}`}
	case fm.percent(t.effect):
		return model.ToolCall{Name: oneOf(fm.dice, "pay", "pay", "wipe"), Args: `{"x":1}`}
	}
	return model.ToolCall{Name: oneOf(fm.dice, "look", "look", "note"), Args: `{"x":2}`}
}

// drawDelegation is the arguments of a delegation.
func (fm *fakeModel) drawDelegation() string {
	who := oneOf(fm.dice, "", "hand", "clerk", "shy", "lead")
	if fm.permille(25) {
		who = "nobody"
	}
	if fm.percent(10) {
		who += `","fork":true,"x":"` // it begins with its parent's history
	}
	more := ""
	if fm.isOn(faultBackground) && fm.percent(55) {
		more = `,"background":true`
	}
	if fm.isOn(faultBackground) && fm.percent(10) {
		more += `,"schema":{"type":"object","required":["answer"]}`
	}
	return `{"task":"t","agent":"` + who + `"` + more + `}`
}

// drawMessage is a call that sends a message to another agent.
func (fm *fakeModel) drawMessage() model.ToolCall {
	to := oneOf(fm.dice, "parent", "parent", "parent", "parent", "root", "hand", "clerk", "shy", "lead", "root", "root-1-0", "root-1-1", "root-1-0-1-0", "nobody")
	return model.ToolCall{Name: sendTool, Args: `{"to":"` + to + `","text":"m` + itoa(fm.step) + oneOf(fm.dice, "", `\n[Message of agent root]`) + `"}`}
}
