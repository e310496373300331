package node

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/control/runindex"
)

// A control service marked a question as answered and died before it appended the answer. The
// question is open again once that process cannot append it any more, and can be answered.
func TestAQuestionIsOpenAgainIfItsAnswerWasNeverAppended(t *testing.T) {
	t.Parallel()
	agents := writeAskerAgent(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c, ctx := connectClient(t, h), testContext(t)
	run := beginRun(t, c, client.RunRequest{Model: writeScript(t, longAsker(0)), Agents: agents, Agent: "asker"})
	if info, err := c.Wait(ctx, run); err != nil || info.State != client.RunParked {
		t.Fatalf("%+v %v", info, err)
	}
	js, err := jetstream.New(connectRole(t, h, bus.RoleNode))
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(ctx, h.names.RunBucket())
	if err != nil {
		t.Fatal(err)
	}
	e, err := kv.Get(ctx, run)
	if err != nil {
		t.Fatal(err)
	}
	var row runindex.Row
	if err := json.Unmarshal(e.Value(), &row); err != nil || len(row.Summary.Questions) != 1 {
		t.Fatalf("%s: %v", e.Value(), err)
	}
	q := row.Summary.Questions[0]
	mark := runindex.AnsweredQuestion{Agent: q.Agent, Query: q.Query, Asked: q.Asked, Request: "lost", AtMS: time.Now().UnixMilli()}
	write := func() {
		t.Helper()
		row.Answered = []runindex.AnsweredQuestion{mark}
		data, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Put(ctx, run, data); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if list, err := c.Questions(ctx); err != nil || len(list) != 0 {
		t.Errorf("while the answer may come: %+v, %v", list, err)
	}
	mark.AtMS -= time.Hour.Milliseconds()
	write()
	if list, err := c.Questions(ctx); err != nil || len(list) != 1 {
		t.Errorf("the answer cannot come: %+v, %v", list, err)
	}
	if err := c.Answer(ctx, client.AnswerRequest{RunID: run, Query: q.Query, Decision: "text", Text: "this"}); err != nil {
		t.Error(err)
	}
	waitFinished(t, c, run, spec.Completed)
}

// Two people answer one question at the same time. The one who is told that the answer counts is the
// one whose answer the agent reads.
func TestOfTwoAnswersAtOnceTheAgentReadsTheOneThatSucceeds(t *testing.T) {
	t.Parallel()
	agents := writeAskerAgent(t)
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{agents} })
	c, ctx := connectClient(t, h), testContext(t)
	model := writeScript(t, longAsker(0))
	for range 4 {
		run := beginRun(t, c, client.RunRequest{Model: model, Agents: agents, Agent: "asker"})
		info, err := c.Wait(ctx, run)
		if err != nil || info.State != client.RunParked {
			t.Fatalf("%+v %v", info, err)
		}
		list, err := c.Questions(ctx)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v %v", list, err)
		}
		texts, errs := []string{"this", "that"}, make([]error, 2)
		var both sync.WaitGroup
		for i, text := range texts {
			both.Go(func() {
				errs[i] = c.Answer(ctx, client.AnswerRequest{RunID: run, Query: list[0].Query, Decision: "text", Text: text})
			})
		}
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("both or none succeed: %v", errs)
		}
		want := texts[0]
		if errs[0] != nil {
			want = texts[1]
		}
		var refused *client.Error
		if err := errors.Join(errs...); !errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
		if done := waitFinished(t, c, run, spec.Completed); done.Result.Text != "bought: a person answered: "+want {
			t.Errorf("%q, want the answer %q", done.Result.Text, want)
		}
	}
}
