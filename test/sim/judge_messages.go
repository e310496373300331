package sim

import (
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// messageJudge checks the messages between actors: those of agents, and that each arrives as it was sent.
type messageJudge struct {
	*environment
	population *population
	sent       map[callKey]int       // messages between agents
	heard      map[messageKey]string // messages of the run's log that were read and then lost from the log
	reused     bool                  // the run's log reused the identity of one of them for other content
}

func newMessageJudge(p *population) *messageJudge {
	return &messageJudge{environment: p.environment, population: p, sent: map[callKey]int{}, heard: map[messageKey]string{}}
}

// checkLanded marks outbox messages that have reached a log, and checks that the reader of
// that log stepped each message that was new there.
func (j *messageJudge) checkLanded(at *actor, e mailbox.Entry, closed bool) {
	from := j.population.byAddr[e.From]
	if from == nil || j.population.forged[e.From] {
		return
	}
	for _, item := range e.Items {
		key := messageKey{e.From, item.N, item.I}
		t := from.shadow.byKey[key]
		if t == nil && from == j.population.super && from.closed && item.Kind == "canceled" {
			continue // a message that a closed log answers is not in that log
		}
		if t == nil || t.to != at.addr || t.kind != item.Kind || t.body != string(item.Body) {
			if !from.damaged && !j.population.super.damaged && !at.damaged {
				j.fail(messagesAreAsLogged, "%s(%d,%d) of %s to %s is not what its log says", item.Kind, item.N, item.I, e.From, at.addr)
			}
			continue
		}
		t.landed = true
		if !closed && !at.damaged && !from.damaged && !at.shadow.applied[key] {
			j.fail(messagesAreAsLogged, "%s(%d,%d) of %s has reached %s and was lost", item.Kind, item.N, item.I, e.From, at.addr)
		}
	}
}

// checkMessages checks that a message goes to a live agent, once, within the limit, that its
// sender gets an answer, and that a background child reports once.
func (j *messageJudge) checkMessages(before, after *supervisor.State, f activation.Fact, out activation.Stepped) {
	answered := 0
	for _, t := range out.Messages {
		switch t.Kind {
		case "returned":
			answered++
		case "messaged":
			j.checkMessage(before, after, f, t)
		}
	}
	sender, known := before.Member(spec.ID(f.From.Agent()))
	if f.Kind == "send" && known { // garbage may contain anything, in the name of no known agent
		key := callKey{spec.ID(f.From.Agent()), decodeFact[agent.Send](j.population, f).Call, 0}
		if j.sent[key]++; j.sent[key] > 1 && !j.population.anyDamaged() {
			j.fail(backgroundIsHeard, "%s sends the message of call %s again", key.who, key.call)
		}
	}
	if f.Kind == "send" && known && !sender.Done && answered != 1 {
		j.fail(backgroundIsHeard, "%s sends a message and is answered %d times", f.From, answered)
	}
	if l := after.Run.Limits.Messages; after.Messages > l && f.Kind == "send" && before.Messages < after.Messages {
		j.fail(loopLimitsHold, "%d messages, %d are allowed", after.Messages, l)
	}
	if before.Live <= after.Live {
		return
	}
	after.Members(func(m supervisor.Member) {
		was, _ := before.Member(m.ID)
		parent, ok := after.Member(m.Parent)
		if !m.Done || was.Done || !m.Background || !ok || parent.Done {
			return
		}
		told := 0
		for _, t := range out.Messages {
			var e agent.Messaged
			if t.Kind == "messaged" && mailbox.Unmarshal(t.Body, &e) == nil && e.From == m.ID && e.Call == m.Call && t.To.Agent() == string(m.Parent) {
				told++
			}
		}
		if told != 1 {
			j.fail(backgroundIsHeard, "%s ends in the background, and its parent is told %d times", m.ID, told)
		}
	})
}

func (j *messageJudge) checkMessage(before, after *supervisor.State, f activation.Fact, t activation.OutboxMessage) {
	to, known := after.Member(spec.ID(t.To.Agent()))
	if !known || to.Done {
		j.fail(backgroundIsHeard, "a message goes to %s, which has ended", t.To)
	}
	var e agent.Messaged
	if err := mailbox.Unmarshal(t.Body, &e); err != nil {
		j.fail(factsAreReadable, "messaged: %v", err)
	}
	if f.Kind == "send" && (before.Cancel != nil || string(e.From) != f.From.Agent()) {
		j.fail(backgroundIsHeard, "a message of %s is sent as that of %s (canceled %v)", f.From, e.From, before.Cancel != nil)
	}
	if from, _ := after.Member(e.From); e.Call != "" && !from.Done {
		j.fail(backgroundIsHeard, "%s is told that %s has ended, which lives", t.To, e.From)
	}
}
