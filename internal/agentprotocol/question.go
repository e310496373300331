package agentprotocol

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

const (
	// queryVerb is the verb of the subjects at which replies to queries arrive.
	queryVerb = "query"
	// queryTries is how often a question is put, if its replies do not decide it.
	queryTries = 3
	// answerTimeout bounds the answer to a question.
	answerTimeout = 30 * time.Second
	// questionLooks and questionPause are how often, and how soon again, the node looks for a question that an event
	// reported without its text: the event may be faster than the log.
	questionLooks = 10
	questionPause = 200 * time.Millisecond
)

// question is an open question of an agent of the run.
type question struct {
	agent string
	event.OpenQuery
}

func (q question) key() string { return q.agent + " " + q.Query }

// isText reports whether any text answers the question: an agent asked it, and it is about no call.
func (q question) isText() bool {
	return q.Digest == "" && q.Reason == spec.NeedsHuman && q.Call != ""
}

// prompt is the text of the query chunk.
func (q question) prompt(refused string) string {
	text := q.Question
	if q.agent != string(spec.Root) {
		text = q.agent + " asks: " + text
	}
	switch {
	case q.isText():
	case q.Digest == "" && q.Reason == spec.NeedsHuman:
		text += "\n\nReply with text, or deny."
	default:
		text += "\n\nReply yes, no (a reason may follow) or skip."
	}
	if refused != "" {
		text = "The reply was not taken: " + refused + "\n\n" + text
	}
	return text
}

// approvals are the replies that approve a call, regardless of case.
var approvals = []string{"y", "yes", "approve"}

// errNoDecision says that a reply decides nothing.
var errNoDecision = errors.New("write yes alone, without punctuation, or no or skip")

// decide reads a reply. An approval has to be the word alone, without punctuation: text that only sounds like one approves
// nothing.
func (q question) decide(text string) (d spec.Decision, reason string, err error) {
	text = strings.TrimSpace(text)
	if q.isText() {
		return spec.TextOnly, text, nil
	}
	word, rest, _ := strings.Cut(text, " ")
	word, rest = strings.ToLower(strings.TrimRight(word, ".,:!")), strings.TrimSpace(rest)
	switch word {
	case "n", "no", "deny":
		return spec.Deny, rest, nil
	}
	if q.Digest == "" && q.Reason == spec.NeedsHuman {
		return spec.TextOnly, text, nil
	}
	switch {
	case rest != "":
	case slices.Contains(approvals, strings.ToLower(text)):
		return spec.Approve, "", nil
	case word == "s" || word == "skip":
		return spec.Skip, "", nil
	}
	return "", "", errNoDecision
}

// putQuestions asks the caller the open questions of the run that were not put yet. They come from the request
// questions: a result does not say which call a question is about.
func (p *promptRun) putQuestions() (found bool, err error) {
	list, err := p.host.cfg.Client.Questions(p.ctx)
	for _, q := range list {
		if q.RunID == p.id {
			found = true
			p.putQuestion(question{q.Agent, event.OpenQuery{Query: q.Query, Question: q.Question, Reason: spec.Reason(q.Reason), Call: q.Call, Digest: q.Digest, Rule: q.Rule, DueMS: q.DueMS}})
		}
	}
	return found, err
}

// hasNewQuestion reports whether the run has a question that was not put yet.
func (p *promptRun) hasNewQuestion(info client.RunInfo) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return info.Result != nil && slices.ContainsFunc(info.Result.Agents, func(a event.AgentResult) bool {
		return a.Query != nil && p.asked[question{string(a.ID), *a.Query}.key()] == nil
	})
}

// putQuestion asks the caller a question, unless that was done.
func (p *promptRun) putQuestion(q question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, put := p.asked[q.key()]; put || p.ended {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	p.asked[q.key()] = cancel
	p.work.Go(func() {
		defer cancel()
		select {
		case <-p.opened:
		case <-ctx.Done():
			return
		}
		if err := p.ask(ctx, q); err != nil && ctx.Err() == nil {
			p.host.cfg.Logger.Warn("question of a prompt not answered by its caller", "run", p.id, "agent", q.agent, "query", q.Query, "error", err)
		}
	})
}

// withdrawQuestion drops a question that was answered, here or elsewhere.
func (p *promptRun) withdrawQuestion(agent string, a event.QueryAnswered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.asked[agent+" "+a.Query]; cancel != nil {
		cancel()
	}
}

// lookForQuestions looks for questions without a text in their event.
func (p *promptRun) lookForQuestions() {
	for range questionLooks {
		if found, err := p.putQuestions(); err == nil && found {
			return
		}
		select {
		case <-time.After(questionPause):
		case <-p.ctx.Done():
			return
		}
	}
}

// ask puts a question until a reply decides it, at most queryTries times. ctx ends with the question.
func (p *promptRun) ask(ctx context.Context, q question) error {
	var refused error
	for range queryTries {
		if ctx.Err() != nil {
			return nil
		}
		text := ""
		if refused != nil {
			text = refused.Error()
		}
		m, err := p.exchange(ctx, q.prompt(text))
		if err != nil {
			return err
		}
		// The event of the answer may be faster than the reply to it: it withdraws the question, not the answer.
		if refused = p.answer(p.ctx, q, m.Data); refused == nil {
			p.wakeUp()
			return nil
		}
		var known *client.Error
		if errors.As(refused, &known) && known.Code != client.CodeBad { // answered by another, or expired
			return refused
		}
	}
	return refused
}

// exchange sends a query chunk and waits for its one reply.
func (p *promptRun) exchange(ctx context.Context, prompt string) (*nats.Msg, error) {
	subject, err := p.host.cfg.Names.AgentSubject(queryVerb, p.host.cfg.Owner, strings.ToLower(rand.Text()))
	if err != nil {
		return nil, err
	}
	sub, err := p.host.cfg.Conn.SubscribeSync(subject)
	if err == nil {
		err = p.host.cfg.Conn.FlushTimeout(flushTimeout) // the server must know it before the caller does
	}
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // if the connection is closed, the subscription is gone
	p.out.send(chunkQuery, query{uuid.NewString(), subject, prompt})
	return sub.NextMsgWithContext(ctx)
}

// answer takes the reply to a question.
func (p *promptRun) answer(ctx context.Context, q question, data []byte) error {
	if len(data) > p.host.payloadMax {
		return badEnvelope("", "the reply has %d bytes, at most %d are accepted", len(data), p.host.payloadMax)
	}
	e, err := decodeEnvelope(data, client.RunRequest{})
	if err != nil {
		return err
	}
	if len(e.Attachments) > 0 {
		return badEnvelope("", "an answer has no attachments")
	}
	d, text, err := q.decide(e.Prompt)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return p.host.cfg.Client.Answer(ctx, client.AnswerRequest{RunID: p.id, Agent: q.agent, Query: q.Query, Decision: d, Text: text, Digest: q.Digest, By: answeredBy})
}

// answeredBy is who answers a question, as the log of the run has it.
const answeredBy = "agent protocol caller"
