package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/permission/person"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// answerQuery passes a user's decision to the agent that asked. Of several requests that answer one
// question, the one whose mark is in the row of the run appends its answer; the others are refused. A
// request that is sent again finds its own mark, and appends the same entry again.
func (c *commander) answerQuery(ctx context.Context, r client.AnswerRequest) (any, error) {
	if err := refuseAgentProgram(ctx); err != nil {
		return nil, err
	}
	if !slices.Contains(bounds.Decisions, r.Decision) {
		return nil, &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("decision %q is invalid", r.Decision), Hint: "use " + refuse.JoinWords(bounds.Decisions)}
	}
	l, q, ok, err := c.awaitQuestion(ctx, r)
	if err != nil {
		return nil, err
	}
	if !ok {
		return refuseMissing(ctx, c.cfg.Post, l, r)
	}
	q, open, err := readApproval(ctx, c.cfg.Post, r.RunID, q)
	switch {
	case err != nil:
		return nil, err
	case !open, l.Row.IsAnswered(q) && !isAnsweredBy(l.Row, q, r):
		return refuseAnswered(ctx, c.cfg.Post, l, r, q.Agent)
	case r.Request != "" && q.ApprovedRequest == r.Request:
		return struct{}{}, checkSentAgain(r, q)
	case r.Digest != "" && r.Digest != q.Digest: // the question about the call of the answer may be answered
		if a, err := findPastAnswer(ctx, c.cfg.Post, r, spec.ID(r.Agent), true); err != nil {
			return nil, err
		} else if a != nil {
			return a.settle(l, r)
		}
	}
	if err := checkAnswer(r, q, time.Now()); err != nil {
		return nil, err
	}
	return c.appendAnswer(ctx, l, r, q)
}

// appendAnswer appends an answer that was checked.
func (c *commander) appendAnswer(ctx context.Context, l runview.View, r client.AnswerRequest, q supervisor.OpenQuestion) (any, error) {
	f := answerFact(r, q)
	if f.Request != "" { // the first of two approvals: the question stays open
		return c.approveFirst(ctx, l, r, q, f)
	}
	claim := runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: markOf(r), AtMS: time.Now().UnixMilli()}
	switch err := c.cfg.Runs.ClaimAnswer(ctx, r.RunID, claim, l.Seen()); {
	case bus.IsUnavailable(err), bus.IsFull(err): // the answer counts by its place in the log
		c.cfg.logger().Warn("a question was not marked as answered in the index", "run", r.RunID, "agent", q.Agent, "error", err)
	case refuse.HasCode(err, client.CodeConflict): // another request has answered it meanwhile
		return refuseAnswered(ctx, c.cfg.Post, l, r, q.Agent)
	case err != nil:
		return nil, err
	}
	done, err := c.appendToViewed(ctx, l, answerID(r), q.Agent, "", f.Kind(), f)
	if err != nil && !bus.IsUnavailable(err) { // then the log has no answer
		if dropErr := c.cfg.Runs.SettleAnswer(ctx, r.RunID, claim, false); dropErr != nil {
			c.cfg.logger().Warn("a question stays marked as answered in the index", "run", r.RunID, "agent", q.Agent, "error", dropErr)
		}
	}
	return done, err
}

// An agent publishes its question before the log of the run has it. So an answer to a question that is not there is
// tried again for questionLag, every questionPause, while the run is live.
const (
	questionLag   = time.Second
	questionPause = 20 * time.Millisecond
)

// awaitQuestion finds the question that a request answers.
func (c *commander) awaitQuestion(ctx context.Context, r client.AnswerRequest) (l runview.View, q supervisor.OpenQuestion, ok bool, err error) {
	for late := time.Now().Add(questionLag); ; {
		l, q, ok, err = c.lookForQuestion(ctx, r)
		if err != nil || ok || l.State() != client.RunLive || !time.Now().Before(late) {
			return l, q, ok, err
		}
		select {
		case <-time.After(questionPause):
		case <-ctx.Done():
			return l, q, false, ctx.Err()
		}
	}
}

// lookForQuestion finds the question that a request answers in the log of the run as it is now.
func (c *commander) lookForQuestion(ctx context.Context, r client.AnswerRequest) (l runview.View, q supervisor.OpenQuestion, ok bool, err error) {
	if l, err = c.lookAtRun(ctx, r.RunID, r.Request); err != nil {
		return l, q, false, err
	}
	q, ok, err = findQuestion(l, r)
	if l.Summary.QuestionsCut && (!ok || r.Agent == "" || len(l.Row.Answered) >= runindex.AnsweredMax) {
		if l, err = c.views.ViewFully(ctx, l.Row); err != nil {
			return l, q, false, err
		}
		q, ok, err = findQuestion(l, r)
	}
	return l, q, ok, err
}

// checkAnswer refuses an answer that the agent would not take: to another call than the one that is asked
// about, after the question has expired, by a person whose approval does not count (again), by approve where the question
// offers options, or for longer than a rule can say.
func checkAnswer(r client.AnswerRequest, q supervisor.OpenQuestion, now time.Time) error {
	switch {
	case r.Digest != "" && r.Digest != q.Digest:
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%q in %s asks about another call, or about other arguments, than the answer names", r.Query, r.RunID),
			Hint: "`troupe questions` shows what is asked now"}
	case q.DueMS > 0 && now.UnixMilli() >= q.DueMS:
		return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("%q in %s has expired at %s, which counts as a denial", r.Query, r.RunID, time.UnixMilli(q.DueMS).UTC().Format(time.RFC3339)),
			Hint: "--question-timeout sets how long questions stay open"}
	case r.Decision == spec.Approve && q.Approvals > 1:
		if err := checkApproval(r, q); err != nil {
			return err
		}
	case r.Decision == spec.Approve && q.Digest == "" && q.Reason == spec.NeedsHuman:
		if options := offeredOptions(q.Question); options != "" {
			return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("approve answers nothing: %q in %s offers %s", r.Query, r.RunID, options),
				Hint: "answer with one of them, or with a text of your own; skip goes on without an answer"}
		}
	}
	return checkAlways(r, q)
}

// offeredOptions returns the options with which a question of an agent ends, "(red | green)"; "" if there are none.
func offeredOptions(question string) string {
	if !strings.HasSuffix(question, ")") {
		return ""
	}
	for i, depth := len(question)-1, 0; i >= 0; i-- {
		switch question[i] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 {
			if options := question[i:]; strings.Contains(options, " | ") {
				return options
			}
			return ""
		}
	}
	return ""
}

// checkAlways refuses an approval for longer than a rule can say.
func checkAlways(r client.AnswerRequest, q supervisor.OpenQuestion) error {
	switch {
	case r.Always != "" && r.Always != agent.AlwaysRun:
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("always is %q", r.Always), Hint: "write run; `troupe answer --always project` writes the rule for a directory"}
	case r.Always != "" && (r.Decision != spec.Approve || q.Rule == ""):
		return &client.Error{Code: client.CodeBad, Text: fmt.Sprintf("%q in %s can only be approved once: no rule is as narrow as this call", r.Query, r.RunID), Hint: "answer approve, without always"}
	}
	return nil
}

// answererMax bounds the name of the sender of an answer.
const answererMax = 80

// answeredBy returns the name of the sender of an answer, as the client states it. Words that troupe itself uses are
// marked as a client's; words for an unnamed sender stay unchanged.
func answeredBy(name string) string {
	name = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(name, ""), func(r rune) bool { return !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) }), "")
	if name == "" {
		return person.ByPerson
	}
	name = clip.Text(name, answererMax)
	if isWord := strings.HasPrefix(name, "the ") || strings.HasPrefix(name, "a "); isWord && person.IsNamed(name) {
		return person.ByClient + name
	}
	return name
}

// namedBy is answeredBy for a request that may name nobody.
func namedBy(name string) string {
	if name == "" {
		return ""
	}
	return answeredBy(name)
}

// answerID is the id of the entry of an answer. An agent drops an entry whose id it has seen, so no
// other request, and no answer to another question, may have the same: clients choose request ids,
// which have no colon.
func answerID(r client.AnswerRequest) string { return "answer:" + r.Query + ":" + markOf(r) }

// markOf names a request and who decides what by it: a client may use the id of a request for two answers. The second one is
// an answer of its own, and is refused if the first one counts.
func markOf(r client.AnswerRequest) string {
	what := string(r.Decision) + "\x00" + answeredBy(r.By)
	if r.Text != "" || r.Always != "" {
		what += "\x00" + r.Always + "\x00" + r.Text
	}
	sum := sha256.Sum256([]byte(what))
	return r.Request + ":" + hex.EncodeToString(sum[:8])
}
