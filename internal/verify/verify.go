// Package verify checks the logs of a run against the rules of the logs (docs/protocol.md) by the logs
// alone. It shares nothing with the loop, the supervisor and the activation that wrote them: it has its
// own reading of an entry's body, and of ours it imports only the codec of entries.
package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// Rule is the name of a check. Users read it.
type Rule string

// The rules.
const (
	Readable      Rule = "readable"           // every entry decodes, and so does every fact of it
	Head          Rule = "head"               // a log begins with its task, its run, or an early command
	Chain         Rule = "hash-chain"         // an own entry names the hash of the entries before it
	Floor         Rule = "ack-floor"          // an own entry claims no more entries than precede it
	Claimed       Rule = "claimed"            // an activation claims a log before it writes own entries
	OneActing     Rule = "one-acts"           // one activation acts at a time
	OwnID         Rule = "own-id"             // the id of an own entry names its log, kind, epoch and activation
	AfterEnd      Rule = "after-end"          // nothing is done after the end of a log
	StartedOnce   Rule = "started-once"       // an attempt of a call begins once
	StartedFirst  Rule = "started-first"      // a side effect has an entry that says that it begins
	AnsweredOnce  Rule = "answered-once"      // a call that began is answered, and by one result
	OneTask       Rule = "one-task"           // an agent gets one task
	Cause         Rule = "cause"              // a message has a cause in the log of its sender
	Unchanged     Rule = "unchanged"          // a message that is sent again is the same
	InOrder       Rule = "in-order"           // the messages of a sender arrive in order
	Delivered     Rule = "finish-delivered"   // an agent whose log is closed has sent its end, once
	Reserved      Rule = "reserved-first"     // what is answered or settled was reserved before
	Settled       Rule = "settled-once"       // what was reserved is settled, once
	OneReply      Rule = "one-reply"          // a reservation has one answer of a model
	SettledAmount Rule = "settled-amount"     // a settlement is of what its answer reports
	Granted       Rule = "granted-as-asked"   // a grant is of no more than was asked for, and a closing turn where it must
	Limit         Rule = "within-limit"       // what is settled and held is within the limits when a grant is made
	Charged       Rule = "charged-as-set"     // an agent of another program is charged as its definition says
	Canceled      Rule = "nothing-after-stop" // an agent begins and asks for nothing after its cancel
	Approved      Rule = "approval-once"      // a call that a person decides about begins by an approval, once
	Rights        Rule = "rights-shrink"      // a child has no right that its parent lacks
	Ended         Rule = "as-claimed"         // the logs show the claimed state and end of the run
)

// Rules are all rules.
func Rules() []Rule {
	return []Rule{Readable, Head, Chain, Floor, Claimed, OneActing, OwnID, AfterEnd, StartedOnce, StartedFirst,
		AnsweredOnce, OneTask, Cause, Unchanged, InOrder,
		Delivered, Reserved, Settled, OneReply, SettledAmount, Granted, Limit, Charged, Canceled, Approved, Rights, Ended}
}

// Finding is a broken rule with its place.
type Finding struct {
	Rule  Rule            `json:"rule"`
	Log   mailbox.Address `json:"log"`
	Entry uint64          `json:"entry"`
	Text  string          `json:"text"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: entry %d of %s: %s", f.Rule, f.Entry, f.Log, f.Text)
}

// Certificate says how a run came to its stop, with the facts that show it.
type Certificate struct {
	Reason string   `json:"stop_reason,omitempty"` // "": it has not ended
	Waits  string   `json:"waits,omitempty"`       // the reason of a question that is open
	Rule   string   `json:"rule,omitempty"`        // by which it stopped
	Facts  []string `json:"facts,omitempty"`
}

// Report is what a verification found.
type Report struct {
	Findings    []Finding   `json:"findings"`
	Certificate Certificate `json:"certificate"`
	Logs        int         `json:"logs"`
	Entries     int         `json:"entries"`
	Chained     int         `json:"chained"`  // entries whose hash was checked
	Messages    int         `json:"messages"` // between actors
	Calls       int         `json:"calls"`    // attempts that have a beginning or a result
	Settled     int         `json:"settled"`  // reservations
	Tokens      int64       `json:"tokens"`   // settled, as answers reported them
	TokenLimit  int64       `json:"token_limit,omitempty"`
	Sums        Sums        `json:"sums"`
	// Damaged: the logs record that one of them was damaged. The rules between logs are then not checked.
	Damaged bool `json:"damaged,omitempty"`
}

// Sums are the sums of the budget at the end of the logs. A call whose cost is unknown counts with all that it could
// cost.
type Sums struct {
	Limit   Amount `json:"limit"` // in force; 0: there is none
	Settled Amount `json:"settled"`
	Held    Amount `json:"held"`    // by open reservations and allowances
	Overrun Amount `json:"overrun"` // part of Settled: billed by providers above what was reserved
}

// Claim is the state of a run as its node, or the first line of its file, gives it.
type Claim struct {
	State  string // "finished", "parked", or another, which leaves no trace in the logs
	Reason string // why it stopped; "": unknown
}

// Logs verifies the logs of one run. The entries of each log must be in order; the logs may be mixed.
func Logs(entries []mailbox.Message) Report { return Run(entries, Claim{}) }

// Run verifies the logs of one run against the rules and against the claim about it.
func Run(entries []mailbox.Message, claim Claim) Report {
	v := &verifier{logs: map[mailbox.Address]*log{}, accounts: map[mailbox.Address]*account{},
		parents: map[string]string{}, successors: map[string]bool{}}
	for _, m := range entries {
		l := v.logs[m.To]
		if l == nil {
			l = newLog(m.To)
			v.logs[m.To] = l
			v.sortedLogs = append(v.sortedLogs, l)
		}
		l.read(m)
	}
	slices.SortFunc(v.sortedLogs, func(a, b *log) int { return cmp.Compare(a.at, b.at) })
	v.report.Entries = len(entries)
	v.collect(claim)
	slices.SortFunc(v.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Log, b.Log), cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Text, b.Text))
	})
	return v.report
}

// verifier is a verification under way.
type verifier struct {
	logs       map[mailbox.Address]*log
	sortedLogs []*log
	report     Report

	accounts   map[mailbox.Address]*account
	addedRules map[string]bool   // by people, for the rest of the run
	parents    map[string]string // of agents to which another one has delegated or handed off, by their delegation
	successors map[string]bool   // agents to which another one has handed off its conversation
	ledger     *ledger
}

func (v *verifier) collect(claim Claim) {
	r := &v.report
	r.Logs, r.Findings = len(v.sortedLogs), []Finding{}
	for _, l := range v.sortedLogs {
		r.Damaged = r.Damaged || l.damaged
		r.Chained += l.chained
		r.Calls += len(l.attempts.list)
		r.Messages += len(l.inbox)
	}
	if super := v.super(); super != nil {
		v.checkMoney(super)
		v.checkAddedRules(super)
		v.certify(super)
		v.checkClaim(super, claim)
		if !r.Damaged {
			v.checkAgents(super)
		}
	}
	if !r.Damaged {
		for _, l := range v.sortedLogs {
			v.checkMessages(l)
		}
	}
	for _, l := range v.sortedLogs {
		r.Findings = append(r.Findings, l.findings...)
	}
}

// checkAgents checks the logs of agents against that of the run.
func (v *verifier) checkAgents(super *log) {
	v.checkUnanswered(super)
	for _, l := range v.sortedLogs {
		if l.isSuper() || l.deleted {
			continue
		}
		v.agentLog(l).check()
	}
}

func (v *verifier) super() *log { return v.logOf(mailbox.Super) }

// logOf returns the log of an actor of the run, whatever node pool it is in; nil: it has none.
func (v *verifier) logOf(actor string) *log {
	for _, l := range v.sortedLogs {
		if l.at.Agent() == actor {
			return l
		}
	}
	return nil
}
