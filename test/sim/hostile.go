package sim

import (
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/model"
)

// vice is how a hostile model answers, again and again.
type vice struct {
	name   string
	answer func(*sim, *run) (model.Reply, *agent.Failed)
}

// The vices. Each of them lets no run end by itself.
var vices = []vice{
	{"endless calls", (*sim).endless},
	{"the same call", (*sim).same},
	{"other calls, nothing new", (*sim).circles},
	{"tiny pieces", (*sim).pieces},
	{"too long", (*sim).tooLong},
	{"nothing", func(*sim, *run) (model.Reply, *agent.Failed) { return says(""), nil }},
	{"forbidden", (*sim).forbidden},
	{"claims", (*sim).claims},
	{"cut arguments", (*sim).halves},
	{"much", (*sim).much},
	{"down", (*sim).down},
}

// fickle has another vice for each reply.
const fickleOdds = 25

// viceOdds is how often a vice shows; else the model is as it would be.
const viceOdds = 92

// Bounds of the output of a hostile model.
const (
	floodOdds  = 5       // per mille of seeds in which a reply makes floodCalls calls
	floodCalls = 100_000 // far above what any shell keeps
	muchBytes  = 60_000
	hugeBytes  = 300_000 // no entry holds it
)

// hostile returns the answer of a model with a vice, if the vice shows now.
func (s *sim) hostile(r *run) (model.Reply, *agent.Failed, bool) {
	if !s.on(Hostile) || r.aborted || !s.percent(viceOdds) || r.first() && s.percent(60) {
		return model.Reply{}, nil, false
	}
	v := s.vice
	if r.request.Choice == "ask_human" && s.percent(90) { // it evades, or obeys
		v = vice{"evades", (*sim).evades}
	}
	if s.fickle {
		v = vices[s.IntN(len(vices))]
	}
	reply, fail := v.answer(s, r)
	if s.fickle && s.percent(5) {
		reply = s.nonsense()
	}
	reply.UsageKnown = !s.percent(s.temper.unknownUsage)
	if s.percent(20) {
		reply.Stop = oneOf(s.dice, model.StopEnd, model.StopTools, model.StopMaxOutput, model.StopRefusal, model.StopUnknown, "pause_turn")
	}
	return reply, fail, true
}

func says(text string, calls ...model.ToolCall) model.Reply {
	stop := model.StopEnd
	if len(calls) > 0 {
		stop = model.StopTools
	}
	return model.Reply{Stop: stop, Message: model.Message{Role: model.Assistant, Text: text, Calls: calls}}
}

// nonsense is a reply that no adapter would make.
func (s *sim) nonsense() model.Reply {
	return model.Reply{Message: model.Message{Role: oneOf(s.dice, model.User, model.ToolRole, ""), Text: oneOf(s.dice, "", "\xff\xfe"),
		Tombstone: s.percent(50), Results: []model.ToolResult{{Call: "1-0", Text: "forged"}}}}
}

func (s *sim) endless(*run) (model.Reply, *agent.Failed) {
	calls := make([]model.ToolCall, s.between(1, 3))
	for i := range calls {
		calls[i] = s.call(s.temper)
		if s.percent(40) {
			calls[i].ID = "twice" // the provider's ids say nothing
		}
	}
	return says(oneOf(s.dice, "", "and on"), calls...), nil
}

func (s *sim) same(*run) (model.Reply, *agent.Failed) {
	c := model.ToolCall{Name: oneOf(s.dice, "look", "look", "look", "pay"), Args: oneOf(s.dice, `{"x":1}`, ` { "x" : 1 } `)}
	return says("", c), nil
}

func (s *sim) circles(*run) (model.Reply, *agent.Failed) {
	return says("", model.ToolCall{Name: "note", Args: `{"x":` + itoa(s.IntN(100)) + `,"again":true}`}), nil
}

// pieces never finish: cut texts, and answers of a word.
func (s *sim) pieces(*run) (model.Reply, *agent.Failed) {
	r := says(oneOf(s.dice, "a", "b", " c"))
	if s.percent(70) {
		r.Stop = model.StopMaxOutput
	}
	return r, nil
}

func (s *sim) tooLong(*run) (model.Reply, *agent.Failed) {
	return model.Reply{}, &agent.Failed{Class: model.TooLong, Detail: "prompt is too long", Unbilled: s.percent(50)}
}

// forbidden proposes a call of a tool that the agent does not have.
func (s *sim) forbidden(*run) (model.Reply, *agent.Failed) {
	name := oneOf(s.dice, "wipe", "wipe", "wipe", "fly", "", "pay now", strings.Repeat("x", 90), "ask_human", "delegate")
	return says("", model.ToolCall{Name: name, Args: oneOf(s.dice, `{"x":1}`, `{"question":"may I?"}`, `{}`)}), nil
}

// evades a choice that was made for it.
func (s *sim) evades(*run) (model.Reply, *agent.Failed) {
	if s.percent(75) {
		return says("done"), nil
	}
	return says("", model.ToolCall{Name: "ask_human", Args: `{"question":"what now?"}`}), nil
}

// claims to be done, at once and without proof.
func (s *sim) claims(*run) (model.Reply, *agent.Failed) {
	return says(oneOf(s.dice, "done", "it is done", `{"answer":7}`, `"yes"`, "done because")), nil
}

func (s *sim) halves(*run) (model.Reply, *agent.Failed) {
	r := says("", model.ToolCall{Name: oneOf(s.dice, "look", "pay"), Args: oneOf(s.dice, `{"x":"`+cutMark, `{"x":"`+cutMark+`"}`), Cut: true},
		model.ToolCall{Name: "look", Args: oneOf(s.dice, "[]", "null", `{"x":`, "\xff", strings.Repeat("[", 200))})
	r.Stop = model.StopMaxOutput
	return r, nil
}

func (s *sim) much(*run) (model.Reply, *agent.Failed) {
	n := s.between(100, muchBytes)
	if s.percent(5) {
		n = hugeBytes
	}
	r := says(strings.Repeat(oneOf(s.dice, "x", "\xff", "é\x00"), n/2))
	switch {
	case s.percent(30):
		r.Message.Calls = []model.ToolCall{{Name: "look", Args: `{"x":"` + r.Message.Text + `"}`}}
	case s.percent(30):
		r.Message.Calls = []model.ToolCall{s.call(s.temper)}
	}
	return r, nil
}

// down fails, for ever.
func (s *sim) down(*run) (model.Reply, *agent.Failed) {
	f := &agent.Failed{Class: oneOf(s.dice, model.RateLimit, model.Overload, model.Network, model.Auth, model.UnknownClass), Detail: "sorry",
		AfterMS: oneOf[int64](s.dice, 0, -1, 1000, 1<<60)}
	f.Unbilled = s.percent(50)
	return model.Reply{Message: model.Message{Text: oneOf(s.dice, "", "half")}}, f
}

// flooded puts many more calls into a reply than anybody keeps, once in a run.
func (s *sim) flooded(reply model.Reply) model.Reply {
	if s.flood && len(reply.Message.Calls) > 0 {
		s.flood = false
		s.reach.hit(Flooded)
		for len(reply.Message.Calls) < floodCalls {
			reply.Message.Calls = append(reply.Message.Calls, reply.Message.Calls[0])
		}
	}
	return reply
}

// signs puts the model's signature under a reply, which goes back to it and to
// no other.
func (s *sim) signs(m *model.Message, r *run) {
	if s.percent(15) {
		data := `{"thinking":"hm","signature":"` + signedBy + r.model + `"}`
		m.Opaque = append(m.Opaque, model.Opaque{Issuer: r.model, Kind: oneOf(s.dice, "thinking", "thinking", "order"), Data: []byte(data)})
	}
}
