package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/mailbox"
)

// certify says how the run came to its stop, or what it waits for: the rule that decided, and the entries that show it.
func (v *verifier) certify(super *log) {
	c := &certifier{v, super, v.logOf("root"), &v.report.Certificate}
	if super.canceled > 0 {
		c.add("a cancel is entry %d of %s%s", super.canceled, super.at, why(super.cancel.Why))
	}
	c.addLimits()
	c.addStops()
	for _, m := range super.inbox.endsOf("root") {
		var b finishBody
		if mailbox.Unmarshal(m.body, &b) == nil {
			c.Reason = b.Outcome.Reason
			c.addRule(m, b)
			c.add("root ended as %s after %d turns and %d calls (entry %d of %s)%s", b.Outcome.Reason, b.Turns, b.Calls, m.entry,
				super.at, why(b.Outcome.Detail))
		}
	}
	if c.Reason == "" && super.budget.hasGivenUp("root") {
		c.Rule = "the supervisor gave root up"
		c.add("no shell of root got through its log, and root was given up")
	}
	if c.Reason == "" {
		for _, q := range super.inbox.openQuestions() {
			c.Waits, c.Rule = q.body.Reason, "a person decides"
			call := ""
			if q.body.Call != "" {
				call = " about call " + q.body.Call
			}
			c.add("%s waits for the answer to question %s%s since its entry %d (entry %d of %s)%s", q.from.Agent(), q.body.Query,
				call, q.cause, q.entry, super.at, why(q.body.Question))
		}
	}
	if super.closed > 0 {
		c.add("the log of the run is closed (entry %d of %s)", super.closed, super.at)
	}
}

// certifier makes a certificate.
type certifier struct {
	*verifier
	superLog, rootLog *log
	*Certificate
}

func (c *certifier) add(format string, args ...any) {
	c.Facts = append(c.Facts, fmt.Sprintf(format, args...))
}

// noPolicy is the rule of a stop that no policy decided.
const noPolicy = "its own proposal, which no rule vetoed"

// addStops adds the last proposed stop with its answer, and counts those before it.
func (c *certifier) addStops() {
	proposed, proposals := message{}, 0
	var last proposalBody
	for _, m := range c.superLog.inbox {
		if m.from.Agent() == "root" && m.kind == "propose_stop" && mailbox.Unmarshal(m.body, &last) == nil {
			proposed, proposals = m, proposals+1
		}
	}
	if proposals == 0 {
		return
	}
	if proposals > 1 {
		c.add("root proposed to stop %d times before, and the supervisor refused", proposals-1)
	}
	c.add("root proposed stop %d in its entry %d (entry %d of %s)", last.Proposal, proposed.n, proposed.entry,
		c.superLog.at)
	if c.rootLog == nil {
		return
	}
	for _, m := range c.rootLog.inbox {
		var b proposalBody
		isAnswer := m.kind == "stop_allowed" || m.kind == "stop_vetoed"
		if isAnswer && mailbox.Unmarshal(m.body, &b) == nil && b.Proposal == last.Proposal {
			final := ""
			if b.Final {
				final = " for good"
			}
			c.add("the supervisor answered %s%s%s (entry %d of %s)%s", m.kind, final, b.By.text(), m.entry, c.rootLog.at,
				why(b.Why))
			c.Rule = noPolicy
			if b.By != nil || m.kind == "stop_vetoed" {
				c.Rule = cmp.Or(strings.TrimPrefix(b.By.text(), " by "), "policy")
			}
		}
	}
}

func (o *originBody) text() string {
	switch {
	case o == nil:
		return ""
	case o.Rule == "":
		return fmt.Sprintf(" by the policy, version %d", o.Version)
	}
	return fmt.Sprintf(" by the rule %q of the policy, version %d", o.Rule, o.Version)
}

// addRule adds the rule by which root ended, with its figures.
func (c *certifier) addRule(end message, b finishBody) {
	if c.rootLog == nil || c.rootLog.task == nil {
		return
	}
	limits := c.rootLog.task.Task.Limits
	switch reason := b.Outcome.Reason; reason {
	case "completed", "vetoed":
		return // the answer to the proposed stop is the rule
	case "max_turns":
		c.Rule = "limit of turns"
		c.add("the limit is %d turns (entry %d of %s; 0: that of the version)", limits.Turns, c.rootLog.taskAt, c.rootLog.at)
	case "timeout":
		c.Rule = "limit of working time"
		c.add("the limits are %d ms until the closing turn and %d ms until the end (entry %d of %s; 0: those of the "+
			"version), root worked %d ms",
			limits.Soft, limits.Hard, c.rootLog.taskAt, c.rootLog.at, b.Worked)
		for _, timer := range []string{"soft", "hard"} {
			if at := c.rootLog.woke[timer]; at > 0 {
				c.add("the %s limit was due (entry %d of %s)", timer, at, c.rootLog.at)
			}
		}
	case "canceled", "aborted_streaming", "aborted_tools":
		c.Rule = "cancel"
		if c.rootLog.canceled > 0 {
			c.add("root read the cancel in its entry %d", c.rootLog.canceled)
		}
	case "guardrail", "policy_blocked", "stop_hook_prevented", "tool_failure":
		c.addHook(reason)
	case "model_error", "refused", "prompt_too_long":
		c.Rule = "answer of the model"
		if n := len(c.rootLog.answers); n > 0 && c.rootLog.answers[n-1].failure != "" {
			c.add("the model failed (entry %d of %s)%s", c.rootLog.answers[n-1].entry, c.rootLog.at,
				why(c.rootLog.answers[n-1].failure))
		}
	case "token_budget", "cost_budget", "max_tool_calls":
		c.Rule = reason
		c.addLastGrant(end)
	default:
		c.Rule = reason
	}
}

func (c *certifier) addHook(reason string) {
	c.Rule = "hook"
	if n := len(c.rootLog.hooked); n > 0 {
		h := c.rootLog.hooked[n-1]
		c.Rule = fmt.Sprintf("hook %q", h.hook)
		c.add("the hook %q decided %s at %s (entry %d of %s)%s", h.hook, h.decision, h.point, h.entry, c.rootLog.at,
			why(h.text))
		return
	}
	c.Rule = reason
}

// addLastGrant adds the answer of the supervisor that left no ordinary turn, with the figures of the pool at that
// moment.
func (c *certifier) addLastGrant(end message) {
	for _, m := range slices.Backward(c.rootLog.inbox) {
		var b grantedBody
		if m.kind != "granted" && m.kind != "denied" || mailbox.Unmarshal(m.body, &b) != nil ||
			m.kind == "granted" && !b.Closing {
			continue
		}
		what := "granted only a closing turn"
		if m.kind == "denied" {
			what = "denied the request"
		}
		c.Rule = cmp.Or(b.Why, c.Rule)
		if b.By != nil {
			c.Rule = strings.TrimPrefix(b.By.text(), " by ")
		}
		c.add("the supervisor %s for %s%s (entry %d of %s)%s", what, cmp.Or(b.Why, "a limit of the agent"), b.By.text(),
			m.entry, c.rootLog.at, why(b.Detail))
		c.addPool(min(m.n, end.entry), b.Reservation)
		return
	}
}

// addPool adds what was settled and held when an entry of the log of the run was read, and what the request asks for.
func (c *certifier) addPool(entry uint64, reservation int) {
	f := c.ledger.before(entry)
	c.add("the limit of the run was %s; settled were %s, and held for attempts under way %s (up to entry %d of %s)",
		f.limit.text(f.limit), f.settled.text(f.limit), f.held.text(f.limit), entry, c.superLog.at)
	if r, ok := c.account(c.rootLog.at).asked[reservation]; ok {
		q := r.body.Request
		c.add("the request asks for up to %d tokens, %d of the prompt and %d of the reply, and after it a closing turn "+
			"must fit: up to %d more (entry %d of %s)", r.bound, q.Input,
			q.Output, r.bound+q.Closing, r.entry, c.superLog.at)
	}
}

// addLimits adds the origin of a fork, the limit of the run, and the amounts that providers have billed above
// reservations.
func (c *certifier) addLimits() {
	if len(c.superLog.opened) == 0 {
		return
	}
	if of := c.superLog.opened[0].Fork; of != "" {
		set := "as its original began"
		for _, b := range c.superLog.budget[1:] {
			if b.setsLimit() {
				set = fmt.Sprintf("set by %s in entry %d of %s; its original began with %s", cmp.Or(b.set.By, "a person"), b.entry,
					c.superLog.at, c.superLog.budget[0].set.Limits.all())
			}
		}
		c.add("the run is a fork of %s, its limit is %s (%s)", of, c.ledger.limit.all(), set)
	}
	if over := c.ledger.overrun; over != (Amount{}) {
		c.add("providers have billed %s more than was reserved (first in entry %d of %s)", over.text(over), c.ledger.overAt,
			c.superLog.at)
	}
}

// String lists the sums for people.
func (s Sums) String() string {
	text := "settled: " + s.Settled.all()
	if s.Held != (Amount{}) {
		text += "; held: " + s.Held.all()
	}
	if s.Overrun != (Amount{}) {
		text += "; billed above reservations: " + s.Overrun.all()
	}
	return text + "; limit: " + s.Limit.all()
}

// all lists the parts of an amount that are not zero.
func (a Amount) all() string { return a.text(a) }

// text lists the parts of an amount that are limited.
func (a Amount) text(limit Amount) string {
	var parts []string
	if limit.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", a.Tokens))
	}
	if limit.Nano > 0 {
		parts = append(parts, fmt.Sprintf("$%.6f", float64(a.Nano)/1e9))
	}
	switch {
	case limit.Calls > 0 && a.Calls == 1:
		parts = append(parts, "1 call")
	case limit.Calls > 0:
		parts = append(parts, fmt.Sprintf("%d calls", a.Calls))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

func why(text string) string {
	const whyBytes = 200
	if len(text) > whyBytes {
		text = strings.ToValidUTF8(text[:whyBytes], "") + "…"
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": %q", text)
}

// checkClaim checks that the logs show the claimed state and end of the run.
func (v *verifier) checkClaim(super *log, claim Claim) {
	reason := v.report.Certificate.Reason
	switch working := v.workingAgent(super); {
	case claim.State == "finished" && super.closed == 0 && (reason == "" || working != ""):
		super.addFinding(Ended, super.n,
			"its node says that the run has finished, and its log lacks the end of %s: its last entries are missing, or its "+
				"supervisor was given up before it wrote them", cmp.Or(working, "root"))
	case claim.Reason != "" && reason != "" && reason != claim.Reason: // "": the supervisor has ended the root itself
		super.addFinding(Ended, super.n, "its node says that the run has stopped as %s, and the logs show %q", claim.Reason,
			reason)
	case claim.State == "parked" && len(super.inbox.openQuestions()) == 0:
		super.addFinding(Ended, super.n,
			"its node says that the run waits for a person, and no question is open: the entries that asked it are missing, "+
				"or others follow")
	}
}

// workingAgent returns an agent that has a log and whose end the log of the run lacks; "": all have ended. With all
// of them ended the run is over, also if a process ended before it wrote the entry that closes the log.
func (v *verifier) workingAgent(super *log) string {
	for _, l := range v.sortedLogs {
		if !l.isSuper() && !l.deleted && !v.report.Damaged && len(super.inbox.endsOf(l.at.Agent())) == 0 && !super.budget.hasGivenUp(l.at.Agent()) {
			return l.at.Agent()
		}
	}
	return ""
}
