package sim

import (
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// drawTaint says what the tools do with data, and what holds for calls that send data out: look brings text from
// outside, and pay sends data out.
func drawTaint(d dice, o *supervisor.Opened) {
	if !d.percent(60) {
		return
	}
	o.Tools = slices.Clone(o.Tools)
	for i, t := range o.Tools {
		switch t.Name {
		case "look":
			o.Tools[i].Data = "outside,private"
		case "pay":
			o.Tools[i].Data = "sends"
		case "note", "wipe":
			o.Tools[i].Data = "none"
		}
	}
	o.Permissions.Taint = oneOf(d, spec.TaintAsk, spec.TaintAsk, spec.TaintDeny, spec.TaintOff)
	for i := range o.Definitions {
		if own := o.Definitions[i].Permissions; own != nil && d.percent(30) {
			own.Taint = oneOf(d, spec.TaintAsk, spec.TaintDeny)
		}
	}
	if d.percent(20) {
		o.Permissions.Allow = append(o.Permissions.Allow, spec.PermissionRule{Text: "pay", AllowsTainted: true})
	}
}

// taintJudge knows by its own reading whether an agent has read text from outside: it reads the transcript, and what
// other agents say about themselves.
type taintJudge struct {
	*watchedAgent
	read    bool            // the agent has read text from outside
	mail    bool            // a message that waits for the next turn has such text
	answers map[string]bool // calls whose answers have such text
}

// noteFact keeps what comes from others, and what the agent reads.
func (j *taintJudge) noteFact(before, after *agent.State, f activation.Fact) {
	if o := j.population.super.shadow.super.State.Run; o.Permissions == nil || o.Permissions.Taint == "" {
		return
	}
	switch f.Kind {
	case "submitted":
		j.read = j.read || after.Task.Tainted != nil
	case "messaged":
		j.mail = j.mail || decodeFact[agent.Messaged](j.population, f).Tainted != nil
	case "returned":
		if e := decodeFact[agent.Returned](j.population, f); e.Tainted != nil {
			j.answers[e.Call] = true
		}
	}
	// Mail that is left when an agent ends has reached no model.
	if j.mail && len(before.Mail) > 0 && len(after.Mail) == 0 && after.Phase != agent.Done {
		j.read, j.mail = true, false
	}
	for _, m := range after.History[min(len(before.History), len(after.History)):] {
		for _, r := range m.Results {
			i := slices.IndexFunc(before.Calls, func(c agent.Call) bool { return c.ID == r.Call })
			if i >= 0 && (j.answers[r.Call] || before.Calls[i].Name == "look" && before.Calls[i].Attempt > 0) {
				j.read = true
			}
		}
	}
}

// checkMessages checks that what a tainted agent says to others carries its mark.
func (j *taintJudge) checkMessages(out activation.Stepped) {
	for _, m := range out.Messages {
		var mark *spec.Taint
		var err error
		switch m.Kind {
		case "delegate":
			var f agent.Delegate
			err = mailbox.Unmarshal(m.Body, &f)
			mark = f.Tainted
		case "send":
			var f agent.Send
			err = mailbox.Unmarshal(m.Body, &f)
			mark = f.Tainted
		case "finish":
			var f agent.Finish
			err = mailbox.Unmarshal(m.Body, &f)
			mark = f.Outcome.Tainted
		default:
			continue
		}
		if err != nil {
			j.fail(factsAreReadable, "%s: a message %s does not decode: %v", j.actor.id, m.Kind, err)
		}
		if j.read && mark == nil {
			j.fail(outsideTextIsMarked, "%s has read text from outside, and its message %s does not say so", j.actor.id, m.Kind)
		}
	}
}

// decide is what holds for a call of a tool under the permissions of one agent, because of text from outside.
func (j *taintJudge) decide(tool, mode string, rules []spec.Permissions) spec.HookDecision {
	allowed := slices.ContainsFunc(rules, func(p spec.Permissions) bool {
		return slices.ContainsFunc(p.Allow, func(r spec.PermissionRule) bool { return r.AllowsTainted && r.Text == tool })
	})
	if !j.read || tool != "pay" || allowed {
		return spec.HookPass
	}
	switch mode {
	case spec.TaintDeny:
		j.reach.hit(placeTaintedDenied)
		return spec.HookDeny
	case spec.TaintAsk:
		j.reach.hit(placeTaintedAsked)
		return spec.HookAsk
	}
	return spec.HookPass
}

// strictestTaint is the strictest value that some permissions state.
func strictestTaint(rules []spec.Permissions) (mode string) {
	for _, word := range []string{spec.TaintOff, spec.TaintAsk, spec.TaintDeny} {
		if slices.ContainsFunc(rules, func(p spec.Permissions) bool { return p.Taint == word }) {
			mode = word
		}
	}
	return mode
}
