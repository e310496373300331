package sim

import (
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// hostileModel is a model that misbehaves in one way, or in another way for each reply.
type hostileModel struct {
	*environment
	model *fakeModel // proposes the calls of a reply
}

// misbehaviour is how a hostile model answers, again and again.
type misbehaviour struct {
	name   string
	answer func(*hostileModel, *job) (model.Reply, *agent.Failed)
}

// misbehaviours lists all kinds. No run ends by itself under any of them.
var misbehaviours = []misbehaviour{
	{"endless calls", (*hostileModel).endlessCalls},
	{"the same call", (*hostileModel).sameCall},
	{"other calls, nothing new", (*hostileModel).uselessCalls},
	{"tiny pieces", (*hostileModel).tinyPieces},
	{"too long", (*hostileModel).promptTooLong},
	{"nothing", func(*hostileModel, *job) (model.Reply, *agent.Failed) { return replyOf(""), nil }},
	{"forbidden", (*hostileModel).forbiddenTool},
	{"claims", (*hostileModel).claimDone},
	{"cut arguments", (*hostileModel).cutArguments},
	{"much", (*hostileModel).hugeOutput},
	{"down", (*hostileModel).alwaysFail},
}

// fickleOdds is the percentage of hostile models that misbehave in another way for each reply.
const fickleOdds = 25

// misbehaviourOdds is the percentage of replies in which a hostile model misbehaves.
const misbehaviourOdds = 92

// Bounds of the output of a hostile model.
const (
	floodOdds  = 5       // per mille of seeds in which a reply makes floodCalls calls
	floodCalls = 100_000 // far above what any shell keeps
	muchBytes  = 60_000
	hugeBytes  = 300_000 // no entry holds it
)

// answerHostile returns the answer of a hostile model, if it misbehaves now.
func (hm *hostileModel) answerHostile(r *job) (model.Reply, *agent.Failed, bool) {
	if !hm.isOn(faultHostile) || r.aborted || !hm.percent(misbehaviourOdds) || r.isFirstOfRoot() && hm.percent(60) {
		return model.Reply{}, nil, false
	}
	v := hm.misbehaviour
	if r.request.Choice == "ask_human" && hm.percent(90) { // it evades, or obeys
		v = misbehaviour{"evades", (*hostileModel).evadeChoice}
	}
	if hm.changesMisbehaviour {
		v = misbehaviours[hm.IntN(len(misbehaviours))]
	}
	reply, fail := v.answer(hm, r)
	if hm.changesMisbehaviour && hm.percent(5) {
		reply = hm.invalidReply()
	}
	reply.UsageKnown = !hm.percent(hm.temper.unknownUsage)
	if hm.percent(20) {
		reply.Stop = oneOf(hm.dice, model.StopEnd, model.StopTools, model.StopMaxOutput, model.StopRefusal, model.StopUnknown, "pause_turn")
	}
	return reply, fail, true
}

func replyOf(text string, calls ...model.ToolCall) model.Reply {
	stop := model.StopEnd
	if len(calls) > 0 {
		stop = model.StopTools
	}
	return model.Reply{Stop: stop, Message: model.Message{Role: model.Assistant, Text: text, Calls: calls}}
}

// invalidReply is a reply that no adapter would make.
func (hm *hostileModel) invalidReply() model.Reply {
	return model.Reply{Message: model.Message{Role: oneOf(hm.dice, model.User, model.ToolRole, ""), Text: oneOf(hm.dice, "", "\xff\xfe"),
		Tombstone: hm.percent(50), Results: []model.ToolResult{{Call: "1-0", Text: "forged"}}}}
}

func (hm *hostileModel) endlessCalls(j *job) (model.Reply, *agent.Failed) {
	calls := make([]model.ToolCall, hm.between(1, 3))
	for i := range calls {
		calls[i] = hm.model.drawCall(hm.temper, j)
		if hm.percent(40) {
			calls[i].ID = "twice" // the provider's ids say nothing
		}
	}
	return replyOf(oneOf(hm.dice, "", "and on"), calls...), nil
}

func (hm *hostileModel) sameCall(*job) (model.Reply, *agent.Failed) {
	c := model.ToolCall{Name: oneOf(hm.dice, "look", "look", "look", "pay"), Args: oneOf(hm.dice, `{"x":1}`, ` { "x" : 1 } `)}
	return replyOf("", c), nil
}

func (hm *hostileModel) uselessCalls(*job) (model.Reply, *agent.Failed) {
	return replyOf("", model.ToolCall{Name: "note", Args: `{"x":` + itoa(hm.IntN(100)) + `,"again":true}`}), nil
}

// tinyPieces never finish: cut texts, and answers of a word.
func (hm *hostileModel) tinyPieces(*job) (model.Reply, *agent.Failed) {
	r := replyOf(oneOf(hm.dice, "a", "b", " c"))
	if hm.percent(70) {
		r.Stop = model.StopMaxOutput
	}
	return r, nil
}

func (hm *hostileModel) promptTooLong(*job) (model.Reply, *agent.Failed) {
	return model.Reply{}, &agent.Failed{Class: model.TooLong, Detail: "prompt is too long", Unbilled: hm.percent(50)}
}

// forbiddenTool proposes a call of a tool that the agent does not have.
func (hm *hostileModel) forbiddenTool(*job) (model.Reply, *agent.Failed) {
	name := oneOf(hm.dice, "wipe", "wipe", "wipe", "fly", "", "pay now", strings.Repeat("x", 90), "ask_human", "delegate")
	return replyOf("", model.ToolCall{Name: name, Args: oneOf(hm.dice, `{"x":1}`, `{"question":"may I?"}`, `{}`)}), nil
}

// evadeChoice evades a choice that was made for it, or obeys.
func (hm *hostileModel) evadeChoice(*job) (model.Reply, *agent.Failed) {
	if hm.percent(75) {
		return replyOf("done"), nil
	}
	return replyOf("", model.ToolCall{Name: "ask_human", Args: `{"question":"what now?"}`}), nil
}

// claimDone claims to be done, or to have failed, at once and without proof.
func (hm *hostileModel) claimDone(*job) (model.Reply, *agent.Failed) {
	return replyOf(oneOf(hm.dice, "done", "it is done", `{"answer":7}`, `"yes"`, "done because", spec.FailedMark+" there is no such order")), nil
}

func (hm *hostileModel) cutArguments(*job) (model.Reply, *agent.Failed) {
	r := replyOf("", model.ToolCall{Name: oneOf(hm.dice, "look", "pay"), Args: oneOf(hm.dice, `{"x":"`+cutMark, `{"x":"`+cutMark+`"}`), Cut: true},
		model.ToolCall{Name: "look", Args: oneOf(hm.dice, "[]", "null", `{"x":`, "\xff", strings.Repeat("[", 200))})
	r.Stop = model.StopMaxOutput
	return r, nil
}

func (hm *hostileModel) hugeOutput(j *job) (model.Reply, *agent.Failed) {
	n := hm.between(100, muchBytes)
	if hm.percent(5) {
		n = hugeBytes
	}
	r := replyOf(strings.Repeat(oneOf(hm.dice, "x", "\xff", "é\x00"), n/2))
	switch {
	case hm.percent(30):
		r.Message.Calls = []model.ToolCall{{Name: "look", Args: `{"x":"` + r.Message.Text + `"}`}}
	case hm.percent(30):
		r.Message.Calls = []model.ToolCall{hm.model.drawCall(hm.temper, j)}
	}
	return r, nil
}

// alwaysFail fails, for ever.
func (hm *hostileModel) alwaysFail(*job) (model.Reply, *agent.Failed) {
	f := &agent.Failed{Class: oneOf(hm.dice, model.RateLimit, model.Overload, model.Network, model.Auth, model.UnknownClass), Detail: "sorry",
		AfterMS: oneOf[int64](hm.dice, 0, -1, 1000, 1<<60)}
	f.Unbilled = hm.percent(50)
	return model.Reply{Message: model.Message{Text: oneOf(hm.dice, "", "half")}}, f
}
