package node

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// Two people must approve: one over HTTP, one over NATS, and neither of them twice. Of two that approve at once both count.
//
//behaviour:shows E3
func TestTwoPeopleApproveThroughHTTPAndNATS(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir, agents := t.TempDir(), writeHandAgents(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{dir, agents}; c.Permissions.Approvals = 2 })
	c, ctx := connectClient(t, h), testContext(t)
	id := beginRun(t, c, client.RunRequest{Agent: "hand", Agents: agents, Dir: dir, Model: writeScript(t, twoCommands), Approvals: 1})
	request := func(q client.Question, by string) client.AnswerRequest {
		return client.AnswerRequest{RunID: id, Request: client.NewID(), Query: q.Query, Decision: "approve", Digest: q.Digest, By: by}
	}
	overHTTP := func(r client.AnswerRequest) int {
		t.Helper()
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		code, _, _ := w.send(w.request("POST", "/api/v1/runs/"+id+"/answer", string(raw)))
		return code
	}
	first := parkedQuestion(t, c, id)
	if first.Approvals != 2 || first.ApprovedBy != "" {
		t.Errorf("the question: %+v", first)
	}
	for _, by := range []string{"", "a person", "client a person", "fork", "\u3164"} {
		if code := overHTTP(request(first, by)); code != http.StatusBadRequest {
			t.Errorf("an approval without a name, by %+q: %d", by, code)
		}
	}
	again := request(first, "ann")
	for range 2 { // a request that is sent again is one approval
		if code := overHTTP(again); code != http.StatusOK {
			t.Fatalf("the first approval over HTTP: %d", code)
		}
	}
	for _, by := range []string{" ANN", "ann\u3164"} {
		if code := overHTTP(request(first, by)); code != http.StatusConflict {
			t.Errorf("the second approval of one person, by %+q: %d", by, code)
		}
	}
	for _, other := range []client.AnswerRequest{{Decision: spec.Deny, By: "ann"}, {Decision: spec.Approve, By: "bob"}} {
		reused := again
		reused.Decision, reused.By = other.Decision, other.By
		if code := overHTTP(reused); code != http.StatusConflict {
			t.Errorf("%s by %s with the id of the first approval: %d", other.Decision, other.By, code)
		}
	}
	if now := parkedQuestion(t, c, id); now.ApprovedBy != "ann" || now.Digest != first.Digest || fileExists(t, dir, "first") {
		t.Errorf("after one approval: %+v", now)
	}
	if err := c.Answer(ctx, request(first, "bob")); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the first command has run", func() bool { return fileExists(t, dir, "first") })
	approveAtOnce(ctx, t, c, request(parkedQuestion(t, c, id), "ann"), "bob")
	waitUntil(t, "the second command has run", func() bool { return fileExists(t, dir, "second") })
	waitFinished(t, c, id, spec.Completed)
}

// approveAtOnce sends an approval and, at the same time, that of another person.
func approveAtOnce(ctx context.Context, t *testing.T, c *client.Client, r client.AnswerRequest, other string) {
	t.Helper()
	var both sync.WaitGroup
	for _, by := range []string{r.By, other} {
		both.Go(func() {
			own := r
			own.Request, own.By = client.NewID(), by
			if err := c.Answer(ctx, own); err != nil {
				t.Errorf("%s: %v", by, err)
			}
		})
	}
	both.Wait()
}
