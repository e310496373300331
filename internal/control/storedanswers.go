package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/activation"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/workgroup"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	// answerPause is the pause after the stream of answers could not be read.
	answerPause = time.Second
	// answerWait is how long one request for the next answer waits.
	answerWait = 20 * time.Second
	// answerTries is how often a stored answer to a question that is not there is tried, with a pause that doubles from
	// answerPause to answerPauseMax: the agent may have asked in its own log, and not yet in that of the run.
	answerTries    = 7
	answerPauseMax = 30 * time.Second
	queryBytesMax  = 256
)

// storedAnswers gives agents the answers that clients have left on the server while no node was up.
type storedAnswers struct {
	cfg       *Config
	work      *workgroup.Group
	lookup    *lookup
	commander *commander
}

// readStoredAnswers reads the answers that clients have left on the server while no node was up.
func (c *storedAnswers) readStoredAnswers(ctx context.Context) {
	for ctx.Err() == nil {
		m, err := c.nextAnswer(ctx)
		switch {
		case err == nil:
			c.takeStoredAnswer(ctx, m)
			continue
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, jetstream.ErrNoMessages), errors.Is(err, nats.ErrTimeout), errors.Is(err, context.Canceled):
			continue // there is none
		}
		c.cfg.Logger.Warn("the answers that wait for a node cannot be read", "error", err)
		select {
		case <-time.After(answerPause):
		case <-ctx.Done():
		}
	}
}

func (c *storedAnswers) nextAnswer(ctx context.Context) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	return c.cfg.Answers.Next(jetstream.FetchContext(ctx))
}

// takeStoredAnswer answers a question with what a client has left. The answer is removed once it is in the log of the
// agent, or refused.
func (c *storedAnswers) takeStoredAnswer(ctx context.Context, m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(ctx, bounds.RequestTimeout)
	defer cancel()
	var r client.AnswerRequest
	_, err := c.work.CallRecovered(ctx, "answer", func(ctx context.Context, data []byte) (any, error) {
		if err := c.readAnswer(m.Subject(), data, &r); err != nil {
			return nil, err
		}
		return c.commander.answerStored(ctx, r)
	}, c.cfg.Redact(m.Data()))
	if err == nil {
		c.cfg.Logger.Info("an answer that waited for a node was read", "run", r.RunID, "query", r.Query)
		c.settleStoredAnswer(r, m.Ack())
		return
	}
	tries := uint64(answerTries)
	if meta, metaErr := m.Metadata(); metaErr == nil {
		tries = meta.NumDelivered
	}
	refusal := c.cfg.newRefusal("answer", err)
	mayPass := refusal.Code == client.CodeNotFound || refusal.Code == client.CodeInternal // an answer that fails by a bug does not come for ever
	if isPassing(refusal.Code) || mayPass && tries < answerTries {
		pause := min(answerPause<<min(tries-1, answerTries), answerPauseMax)
		c.settleStoredAnswer(r, m.NakWithDelay(pause))
		return
	}
	c.refuseStoredAnswer(ctx, r, refusal)
	c.settleStoredAnswer(r, m.Term())
}

// isPassing reports whether a later attempt may succeed, whatever the answer.
func isPassing(code string) bool {
	switch code {
	case client.CodeUnavailable, client.CodeLimit, client.CodeLogs:
		return true
	}
	return false
}

// readAnswer decodes an answer, whose subject names its run.
func (c *storedAnswers) readAnswer(subject string, data []byte, r *client.AnswerRequest) error {
	run, err := c.cfg.Names.ParseAnswer(subject)
	if err == nil {
		err = decodeStrict(data, r)
	}
	if r.RunID == "" {
		r.RunID = run
	}
	if err == nil && r.RunID != run {
		err = fmt.Errorf("the subject names the run %s, and the answer %.80q", run, r.RunID)
	}
	r.RunID = run
	if err != nil {
		return &client.Error{Code: client.CodeBad, Text: err.Error(), Hint: "send a JSON object with the fields of troupe.cmd.answer: docs/control.md"}
	}
	return nil
}

// answerStored is answerQuery for an answer that has waited. An approval must say which call was read: by now the
// question may be about another one.
func (c *commander) answerStored(ctx context.Context, r client.AnswerRequest) (any, error) {
	if r.Decision == spec.Approve && r.Digest == "" {
		l, q, ok, err := c.awaitQuestion(ctx, r)
		if err != nil {
			return nil, err
		}
		if ok && q.Digest != "" && !l.Row.IsAnswered(q) {
			return nil, &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the approval of %q in %s waited for a node, and does not name the call", r.Query, r.RunID),
				Hint: "`troupe questions -o json` shows the digest of the call: --digest"}
		}
	}
	return c.answerQuery(ctx, r)
}

// refuseStoredAnswer reports an answer that has no effect by an event: its sender does not wait for the reply. A run
// that does not exist has no events.
func (c *storedAnswers) refuseStoredAnswer(ctx context.Context, r client.AnswerRequest, why *client.Error) {
	c.cfg.Logger.Warn("an answer that waited for a node was refused", "run", r.RunID, "query", clip.Text(r.Query, queryBytesMax), "code", why.Code, "error", why.Text)
	if _, err := c.lookup.findRun(ctx, r.RunID); err != nil {
		return
	}
	now := c.cfg.Now()
	c.cfg.Publish(activation.NewPublished(now.UnixMilli(), event.Published{ID: fmt.Sprintf("%s#refused-%s", mailbox.At(r.RunID, mailbox.Super), client.NewID()), Run: r.RunID, Agent: mailbox.Super, Node: c.cfg.Name,
		Kind: event.KindQueryRefused, Data: event.QueryRefused{Query: clip.Text(r.Query, queryBytesMax), By: answeredBy(r.By), Code: why.Code, Why: why.Text}}))
}

func (c *storedAnswers) settleStoredAnswer(r client.AnswerRequest, err error) {
	if err != nil { // it comes again, and then has no further effect
		c.cfg.Logger.Warn("the stream of answers was not told that an answer was read", "run", r.RunID, "error", err)
	}
}
