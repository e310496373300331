package control

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/control/runview"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/supervisor"
)

// An answer that does not say which of several questions it answers is refused, and the refusal names the agents. The agent,
// the digest of the call and the mark of a request that is sent again each say which one is meant.
func TestAnAmbiguousAnswerIsRefused(t *testing.T) {
	t.Parallel()
	first := supervisor.OpenQuestion{Agent: "root-1-0", Query: "1-0.0", Asked: 3, Digest: "a"}
	second := supervisor.OpenQuestion{Agent: "root-1-1", Query: "1-0.0", Asked: 4, Digest: "b"}
	sent := client.AnswerRequest{RunID: "r", Request: "sent", Query: "1-0.0", Decision: spec.Approve}
	mark := runindex.AnsweredQuestion{Agent: first.Agent, Query: first.Query, Asked: first.Asked, Request: markOf(sent)}
	for name, c := range map[string]struct {
		answer   client.AnswerRequest
		answered []runindex.AnsweredQuestion
		want     spec.ID // "": refused
	}{
		"neither":                  {answer: client.AnswerRequest{Query: "1-0.0"}},
		"a digest of neither":      {answer: client.AnswerRequest{Query: "1-0.0", Digest: "c"}},
		"the agent":                {answer: client.AnswerRequest{Query: "1-0.0", Agent: "root-1-1"}, want: "root-1-1"},
		"the digest":               {answer: client.AnswerRequest{Query: "1-0.0", Digest: "b"}, want: "root-1-1"},
		"one is answered":          {answer: client.AnswerRequest{Query: "1-0.0"}, answered: []runindex.AnsweredQuestion{mark}, want: "root-1-1"},
		"sent again":               {answer: sent, answered: []runindex.AnsweredQuestion{mark}, want: "root-1-0"},
		"the agent, answered":      {answer: client.AnswerRequest{Query: "1-0.0", Agent: "root-1-0"}, answered: []runindex.AnsweredQuestion{mark}, want: "root-1-0"},
		"the digest, and answered": {answer: client.AnswerRequest{Query: "1-0.0", Digest: "a"}, answered: []runindex.AnsweredQuestion{mark}, want: "root-1-0"},
	} {
		view := runview.View{Row: runindex.Row{Answered: c.answered}, Summary: supervisor.Summary{Questions: []supervisor.OpenQuestion{first, second}}}
		q, ok, err := findQuestion(view, c.answer)
		if c.want == "" {
			if ok || !refuse.HasCode(err, client.CodeConflict) || !strings.Contains(err.Error(), "root-1-0, root-1-1") {
				t.Errorf("%s: %+v, %v, %v", name, q, ok, err)
			}
			continue
		}
		if !ok || err != nil || q.Agent != c.want {
			t.Errorf("%s: %+v, %v, %v", name, q, ok, err)
		}
	}
}

// Of two agents that asked under the same query, a request that is sent again finds its own answer, and any other one the
// answer about the call that it names.
func TestARequestFindsItsPastAnswer(t *testing.T) {
	t.Parallel()
	post := memory.New(memory.Config{})
	logged := func(id spec.ID, request, digest string) client.AnswerRequest {
		r := client.AnswerRequest{RunID: "r", Query: "1-0.0", Request: request, Digest: digest, Decision: spec.Approve, By: "ann"}
		f := agent.Answered{Query: r.Query, Decision: r.Decision, Digest: digest, By: r.By}
		body, err := mailbox.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := mailbox.Encode(mailbox.Entry{Form: mailbox.Form, Items: []mailbox.Item{{ID: answerID(r), Kind: f.Kind(), Body: body}}})
		if err != nil {
			t.Fatal(err)
		}
		post.Append(t.Context(), mailbox.At("r", string(id)), data, func(_ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		return r
	}
	logged("root-1-0", "first", "a")
	second := logged("root-1-1", "second", "b")
	for name, c := range map[string]struct {
		change   func(*client.AnswerRequest)
		of       spec.ID
		sameCall bool
		want     string // the digest of the answer that is found; "": none
		isOf     bool
	}{
		"sent again":                     {want: "b", isOf: true},
		"sent again, to the first agent": {of: "root-1-0", want: "a"},
		"another request":                {change: func(r *client.AnswerRequest) { r.Request, r.Digest = "third", "" }, want: "a"},
		"another request about the call": {change: func(r *client.AnswerRequest) { r.Request = "third" }, want: "b"},
		"a call of neither":              {change: func(r *client.AnswerRequest) { r.Request, r.Digest = "third", "c" }, want: "a"},
		"a call of neither, of no other": {change: func(r *client.AnswerRequest) { r.Request, r.Digest = "third", "c" }, sameCall: true},
		"another decision":               {change: func(r *client.AnswerRequest) { r.Decision = spec.Deny }, want: "b"},
		"another query":                  {change: func(r *client.AnswerRequest) { r.Query = "2-0.0" }},
	} {
		r := second
		if c.change != nil {
			c.change(&r)
		}
		got, err := findPastAnswer(t.Context(), post, r, c.of, c.sameCall)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "" && got != nil, c.want != "" && (got == nil || got.fact.Digest != c.want || got.isOf(r) != c.isOf):
			t.Errorf("%s: %+v", name, got)
		}
	}
}
