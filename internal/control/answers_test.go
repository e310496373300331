package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/bounds"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runlog"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/test/testlog"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// parkedRun is an idleRun whose root has asked question q.
func parkedRun(t *testing.T) *parts {
	t.Helper()
	c := idleRun(t)
	if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	askQuestion(t, c)
	return c
}

// askQuestion records in the log of the run that its root asks question q.
func askQuestion(t *testing.T, c *parts) {
	t.Helper()
	body, err := mailbox.Marshal(agent.Park{Query: "q", Question: "Which?", Reason: spec.NeedsHuman})
	if err != nil {
		t.Error(err)
		return
	}
	data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, From: mailbox.At("r", "root"), Items: []mailbox.Item{{N: 3, Kind: agent.Park{}.Kind(), Body: body}}})
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := mailbox.Put(t.Context(), c.cfg.Post, mailbox.At("r", mailbox.Super), data); err != nil {
		t.Error(err)
	}
}

// answersIn returns the answers in the log of the root.
func answersIn(t *testing.T, c *parts) (decisions []spec.Decision) {
	t.Helper()
	err := c.cfg.Post.Read(t.Context(), mailbox.At("r", "root"), 0, 0, func(m mailbox.Message) error {
		e, err := mailbox.Decode(m.Data)
		for _, item := range e.Items {
			var f agent.Answered
			if item.Kind != f.Kind() {
				continue
			}
			if err := mailbox.Unmarshal(item.Body, &f); err != nil {
				return err
			}
			decisions = append(decisions, f.Decision)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return decisions
}

// Who answers as soon as the agent's event says that it asks may be faster than the log of the run.
func TestAnswerThatIsFasterThanTheLogCounts(t *testing.T) {
	t.Parallel()
	c := idleRun(t)
	if _, err := c.cfg.Runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	time.AfterFunc(questionLag/10, func() { askQuestion(t, c); close(asked) })
	if _, err := c.commander.answerQuery(t.Context(), client.AnswerRequest{RunID: "r", Request: "once", Query: "q", Decision: spec.Approve}); err != nil {
		t.Error(err)
	}
	<-asked
	if logged := answersIn(t, c); len(logged) != 1 {
		t.Errorf("the log has %q", logged)
	}
}

// Of two people who answer one question, one is told that the answer counts, and the log has no
// other. A request whose reply was lost is sent again, and succeeds on any node.
func TestOneOfTwoAnswersCounts(t *testing.T) {
	t.Parallel()
	c := parkedRun(t)
	other := newParts(c.cfg) // another node
	decisions := []spec.Decision{spec.Approve, spec.Deny}
	errs := make(chan error, len(decisions))
	for i, o := range []*parts{c, other} {
		go func() {
			_, err := o.commander.answerQuery(t.Context(), client.AnswerRequest{RunID: "r", Request: string(decisions[i]), Query: "q", Decision: decisions[i]})
			if err != nil && !refuse.HasCode(err, client.CodeConflict) {
				err = fmt.Errorf("unexpected: %w", err)
			}
			errs <- err
		}()
	}
	told := 0
	for range decisions {
		if err := <-errs; err == nil {
			told++
		} else {
			t.Log(err)
		}
	}
	logged := answersIn(t, c)
	if told != 1 || len(logged) != 1 {
		t.Fatalf("%d were told that their answer counts; the log has %q", told, logged)
	}
	if _, err := other.commander.answerQuery(t.Context(), client.AnswerRequest{RunID: "r", Request: string(logged[0]), Query: "q", Decision: logged[0]}); err != nil {
		t.Errorf("the request that counts, sent again: %v", err)
	}
}

// A request that is sent again renews its mark: an older one would count as that of a process that has died, and be taken
// away before the answer is in the log.
func TestTheMarkOfARequestThatIsSentAgainIsYoung(t *testing.T) {
	t.Parallel()
	runs := runindex.Open(bucketsOf(t, startEmbedded(t)))
	if _, err := runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	q := supervisor.OpenQuestion{Agent: "root", Query: "q", Asked: 3}
	open := runindex.RowSummary{Summary: supervisor.Summary{Phase: supervisor.Live, Questions: []supervisor.OpenQuestion{q}}, Place: 3, Form: mailbox.Form}
	now := time.Now()
	first := runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: "once", AtMS: now.Add(-2 * bounds.RequestTimeout).UnixMilli()}
	again := first
	again.AtMS = now.UnixMilli()
	for _, claim := range []runindex.AnsweredQuestion{first, again} {
		if err := runs.ClaimAnswer(t.Context(), "r", claim, open); err != nil {
			t.Fatal(err)
		}
	}
	if err := runs.SettleAnswer(t.Context(), "r", first, false); err != nil { // by a request that has seen the old mark
		t.Fatal(err)
	}
	row, _, err := runs.Get(t.Context(), "r")
	if err != nil || len(row.Answered) != 1 || row.Answered[0].IsDoubtful(now) {
		t.Errorf("%v %+v", err, row.Answered)
	}
}

// Who looked at a question before another answer closed it does not answer it again: the row has forgotten the mark with
// the question.
func TestAnAnswerToAQuestionThatWasClosedMeanwhileIsRefused(t *testing.T) {
	t.Parallel()
	runs := runindex.Open(bucketsOf(t, startEmbedded(t)))
	if _, err := runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	q := supervisor.OpenQuestion{Agent: "root", Query: "q", Asked: 3}
	open := runindex.RowSummary{Summary: supervisor.Summary{Phase: supervisor.Live, Questions: []supervisor.OpenQuestion{q}}, Place: 3, Form: mailbox.Form}
	claim := func(request string) error {
		return runs.ClaimAnswer(t.Context(), "r", runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: request, AtMS: time.Now().UnixMilli()}, open)
	}
	if err := claim("first"); err != nil {
		t.Fatal(err)
	}
	closed := open
	closed.Questions, closed.Place = nil, 4
	if err := runs.Repair(t.Context(), "r", closed); err != nil {
		t.Fatal(err)
	}
	if err := claim("second"); !refuse.HasCode(err, client.CodeConflict) {
		t.Errorf("the second answer: %v", err)
	}
}

// A run may be answered before the process that opened it has written its row.
func TestTheMarkOfARunWithoutARowWaitsForIt(t *testing.T) {
	t.Parallel()
	runs := runindex.Open(bucketsOf(t, startEmbedded(t)))
	listed := make(chan error, 1)
	time.AfterFunc(3*questionPause, func() {
		_, err := runs.Add(context.Background(), client.RunInfo{RunID: "r", State: client.RunLive})
		listed <- err
	})
	mark := runindex.AnsweredQuestion{Agent: "root", Query: "q", Asked: 3, Request: "a", AtMS: time.Now().UnixMilli()}
	if err := runs.ClaimAnswer(t.Context(), "r", mark, runindex.RowSummary{}); err != nil {
		t.Fatal(err)
	}
	if err := <-listed; err != nil {
		t.Fatal(err)
	}
	row, _, err := runs.Get(t.Context(), "r")
	if err != nil || len(row.Answered) != 1 {
		t.Errorf("%+v %v", row.Answered, err)
	}
}

// A process marked the question and may have died. Once it cannot append its answer any more, the log
// of the agent tells whether it did, and the row remembers that.
func TestADoubtfulMarkIsCheckedOnce(t *testing.T) {
	t.Parallel()
	c := parkedRun(t)
	row, _, err := c.cfg.Runs.Get(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.views.ViewOne(t.Context(), row)
	if err != nil || len(l.Questions()) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	q := l.Questions()[0]
	for _, tt := range []struct {
		what   string
		age    time.Duration
		logged bool
	}{
		{"young", 0, false},
		{"old, and the log does not ask", 2 * bounds.RequestTimeout, true},
	} {
		mark := runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: "a-" + fmt.Sprint(tt.logged), AtMS: time.Now().Add(-tt.age).UnixMilli()}
		if err := c.cfg.Runs.ClaimAnswer(t.Context(), "r", mark, l.Seen()); err != nil {
			t.Fatal(err)
		}
		if row, _, err = c.cfg.Runs.Get(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		if now, err := c.views.ViewOne(t.Context(), row); err != nil || len(now.Questions()) != 0 {
			t.Errorf("%s: %+v, %v", tt.what, now.Questions(), err)
		}
		if row, _, err = c.cfg.Runs.Get(t.Context(), "r"); err != nil || len(row.Answered) != 1 || row.Answered[0].Logged != tt.logged {
			t.Errorf("%s: %+v, %v", tt.what, row.Answered, err)
		}
		mark.Logged = tt.logged
		if err := c.cfg.Runs.SettleAnswer(t.Context(), "r", mark, false); err != nil {
			t.Fatal(err)
		}
		if row, _, err = c.cfg.Runs.Get(t.Context(), "r"); err != nil || len(row.Answered) != 0 {
			t.Errorf("a dropped mark: %+v, %v", row.Answered, err)
		}
	}
}

// A row forgets no answer of a question that may be open: it refuses more answers instead.
func TestARowForgetsNoAnswer(t *testing.T) {
	t.Parallel()
	runs := runindex.Open(bucketsOf(t, startEmbedded(t)))
	if _, err := runs.Add(t.Context(), client.RunInfo{RunID: "r", State: client.RunLive}); err != nil {
		t.Fatal(err)
	}
	var open supervisor.Summary
	old := time.Now().Add(-time.Hour)
	mark := func(i int, at time.Time) runindex.AnsweredQuestion {
		return runindex.AnsweredQuestion{Agent: spec.ID(fmt.Sprintf("root-%d", i)), Query: "q", Asked: uint64(i), Request: "a", AtMS: at.UnixMilli()}
	}
	for i := range runindex.AnsweredMax {
		open.Questions = append(open.Questions, supervisor.OpenQuestion{Agent: mark(i, old).Agent, Query: "q", Asked: uint64(i)})
		if err := runs.ClaimAnswer(t.Context(), "r", mark(i, old), runindex.RowSummary{Summary: open}); err != nil {
			t.Fatal(err)
		}
	}
	if err := runs.ClaimAnswer(t.Context(), "r", mark(runindex.AnsweredMax, time.Now()), runindex.RowSummary{Summary: open}); !client.Busy(err) {
		t.Errorf("one more: %v", err)
	}
	open.QuestionsCut = true
	if err := runs.ClaimAnswer(t.Context(), "r", mark(runindex.AnsweredMax, time.Now()), runindex.RowSummary{Summary: supervisor.Summary{QuestionsCut: true}}); !client.Busy(err) {
		t.Errorf("one more, by a Summary that leaves out questions: %v", err)
	}
	row, _, err := runs.Get(t.Context(), "r")
	if err != nil || len(row.Answered) != runindex.AnsweredMax || row.IsAllAnswered(open) {
		t.Errorf("%+v: all answered, %v", row.Answered, err)
	}
	open.Questions, open.QuestionsCut = open.Questions[1:], false // the first has been read
	if err := runs.ClaimAnswer(t.Context(), "r", mark(runindex.AnsweredMax, time.Now()), runindex.RowSummary{Summary: open}); err != nil {
		t.Errorf("one more, after one was read: %v", err)
	}
}

// A node reports a parked run whose only question is answered: nobody is asked.
func TestARunWhoseQuestionsAreAnsweredIsNotParked(t *testing.T) {
	t.Parallel()
	c := parkedRun(t)
	record := func(after uint64, want bool) {
		t.Helper()
		r, err := runlog.ReplaySupervisorLog(t.Context(), c.cfg.Post, "r")
		if err != nil {
			t.Fatal(err)
		}
		if done, err := c.cfg.Runs.RecordOrAdd(t.Context(), "r", runindex.Report{State: r.State, Place: r.Place + after}); err != nil || done.Parked != want {
			t.Errorf("%+v, %v; want parked %t", done, err, want)
		}
	}
	record(0, false) // the child of the root is about to begin
	testlog.PutFact(t, c.cfg.Post, mailbox.At("r", mailbox.Super), mailbox.At("r", "root-1-0"), agent.Finish{Outcome: spec.Outcome{Reason: spec.Completed}}, false)
	record(0, true)
	if _, err := c.commander.answerQuery(t.Context(), client.AnswerRequest{RunID: "r", Request: "a", Query: "q", Decision: "approve"}); err != nil {
		t.Fatal(err)
	}
	record(1, false)
}
