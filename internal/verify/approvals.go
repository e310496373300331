package verify

import (
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/permission/person"
	"github.com/troupe-run/troupe/mailbox"
)

// decision is what a person answered to a question.
type decision struct {
	entry uint64
	at    int64
	body  decisionBody
}

func (d decision) approves(q question) bool {
	b := d.body
	return b.Query == q.body.Query && b.Decision == "approve" &&
		(b.Digest == "" || b.Digest == q.body.Digest) && (q.body.Due == 0 || d.at < q.body.Due)
}

// question is what an agent asked a person.
type question struct {
	entry uint64 // in the log of the run
	cause uint64 // in the log of the agent
	from  mailbox.Address
	body  parkBody
}

func (l *log) readDecision(item mailbox.Item) {
	var b decisionBody
	if l.decode(item, &b) {
		l.decided = append(l.decided, decision{l.n, l.now, b})
	}
}

// isApproved reports whether between two entries as many people approved a call as a question about it needs.
func (c *account) isApproved(l *log, call string, after, before uint64) bool {
	approvers := map[string][]string{} // by query
	for _, d := range l.decided {
		if d.entry <= after || d.entry >= before {
			continue
		}
		for _, q := range c.questions {
			if q.body.Call != call || q.cause >= d.entry || !d.approves(q) {
				continue
			}
			need := l.approvalsNeeded(q)
			if need < 2 {
				return true
			}
			by, counted := d.body.By, approvers[q.body.Query]
			if person.IsNamed(by) && !slices.ContainsFunc(counted, func(o string) bool { return person.IsSamePerson(o, by) }) {
				approvers[q.body.Query] = append(counted, by)
			}
			if len(approvers[q.body.Query]) >= need {
				return true
			}
		}
	}
	return false
}

// approvalsNeeded is how many people must approve what a question is about: as many as it says, or as the
// permissions of the agent want.
func (l *log) approvalsNeeded(q question) int {
	need := q.body.Approvals
	for _, p := range l.task.Task.Permissions {
		need = max(need, p.Approvals)
	}
	return need
}

// checkBegun checks that an attempt of a side effect that follows another one begins by an approval of its own: the
// outcome of the other one is unknown, so a person decides, and each decision counts once.
func (l *agentLog) checkBegun(a *attempt, tool string) {
	before := l.attempts.find(a.call, a.no-1)
	if before == nil || before.started == 0 || before.unbegun || a.started < before.started {
		return
	}
	if !l.account.isApproved(l.log, a.call, before.started, a.started) {
		l.addFinding(Approved, a.started,
			"attempt %d of call %s of %s begins, attempt %d began in entry %d, and between them too few people "+
				"approved that it begins again",
			a.no, a.call, tool, before.no, before.started)
	}
}

// checkAsked checks that a call about which a person was asked begins by the approval of the newest question: of as
// many people as it needs. A question that is asked again for the next approval is the same one.
func (l *agentLog) checkAsked(a *attempt) {
	if a.started == 0 {
		return
	}
	var newest *question
	for i, q := range l.account.questions {
		if q.body.Call == a.call && q.cause < a.started {
			if newest == nil || newest.body.Query != q.body.Query {
				newest = &l.account.questions[i]
			}
		}
	}
	if newest == nil || l.account.isApproved(l.log, a.call, newest.cause, a.started) {
		return
	}
	l.addFinding(Approved, a.started,
		"attempt %d of call %s begins, and too few people have approved question %s about it (entry %d of %s)",
		a.no, a.call, newest.body.Query, newest.entry, l.run.super().at)
}

// checkAddedRules checks that the rules that were added to the run come from approvals that say so.
func (v *verifier) checkAddedRules(super *log) {
	v.addedRules = map[string]bool{}
	for _, m := range super.inbox {
		if m.kind != "allow_rule" {
			continue
		}
		var b allowRuleBody
		if !super.decodeOf(m.entry, m.kind, m.body, &b) {
			continue
		}
		text, _, _ := strings.Cut(string(b.Rule), ruleSeparator)
		v.addedRules[text] = true
		from := v.logs[m.from]
		if from == nil || from.n < m.n || v.report.Damaged {
			continue
		}
		if !v.account(from.at).isAlways(from, m.n) {
			super.addFinding(Approved, m.entry,
				"%s adds the rule %.200q, and its entry %d is not an approval for the rest of the run", m.from, text, m.n)
		}
	}
}

// isAlways reports whether an entry is an approval for the rest of the run or, of several people, the last one of them.
func (c *account) isAlways(l *log, entry uint64) bool {
	i := slices.IndexFunc(l.decided, func(d decision) bool { return d.entry == entry && d.isForRun() })
	if i < 0 {
		return false
	}
	asked := func(q question) bool {
		return q.cause < entry && l.decided[i].approves(q) && l.approvalsNeeded(q) > 1
	}
	if !slices.ContainsFunc(c.questions, asked) {
		return true
	}
	return slices.ContainsFunc(l.decided[:i], func(d decision) bool { return d.isForRun() && d.body.Query == l.decided[i].body.Query })
}

func (d decision) isForRun() bool { return d.body.Decision == "approve" && d.body.Always == "run" }
