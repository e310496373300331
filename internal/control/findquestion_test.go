package control

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/supervisor"
)

// An answer that does not say which of several questions it answers is refused, and the refusal names the agents. The agent,
// the digest of the call and the mark of a request that is sent again each say which one is meant.
func TestAnAmbiguousAnswerIsRefused(t *testing.T) {
	t.Parallel()
	first := supervisor.OpenQuestion{Agent: "root-1-0", Query: "1-0.0", Asked: 3, Digest: "a"}
	second := supervisor.OpenQuestion{Agent: "root-1-1", Query: "1-0.0", Asked: 4, Digest: "b"}
	sent := client.AnswerRequest{RunID: "r", Request: "sent", Query: "1-0.0", Decision: spec.Approve}
	mark := AnsweredQuestion{Agent: first.Agent, Query: first.Query, Asked: first.Asked, Request: markOf(sent)}
	for name, c := range map[string]struct {
		answer   client.AnswerRequest
		answered []AnsweredQuestion
		want     spec.ID // "": refused
	}{
		"neither":                  {answer: client.AnswerRequest{Query: "1-0.0"}},
		"a digest of neither":      {answer: client.AnswerRequest{Query: "1-0.0", Digest: "c"}},
		"the agent":                {answer: client.AnswerRequest{Query: "1-0.0", Agent: "root-1-1"}, want: "root-1-1"},
		"the digest":               {answer: client.AnswerRequest{Query: "1-0.0", Digest: "b"}, want: "root-1-1"},
		"one is answered":          {answer: client.AnswerRequest{Query: "1-0.0"}, answered: []AnsweredQuestion{mark}, want: "root-1-1"},
		"sent again":               {answer: sent, answered: []AnsweredQuestion{mark}, want: "root-1-0"},
		"the agent, answered":      {answer: client.AnswerRequest{Query: "1-0.0", Agent: "root-1-0"}, answered: []AnsweredQuestion{mark}, want: "root-1-0"},
		"the digest, and answered": {answer: client.AnswerRequest{Query: "1-0.0", Digest: "a"}, answered: []AnsweredQuestion{mark}, want: "root-1-0"},
	} {
		view := runView{row: Row{Answered: c.answered}, summary: supervisor.Summary{Questions: []supervisor.OpenQuestion{first, second}}}
		q, ok, err := findQuestion(view, c.answer)
		if c.want == "" {
			if ok || !hasCode(err, client.CodeConflict) || !strings.Contains(err.Error(), "root-1-0, root-1-1") {
				t.Errorf("%s: %+v, %v, %v", name, q, ok, err)
			}
			continue
		}
		if !ok || err != nil || q.Agent != c.want {
			t.Errorf("%s: %+v, %v, %v", name, q, ok, err)
		}
	}
}
