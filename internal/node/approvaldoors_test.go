package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
)

// An approval is answered over HTTP and over NATS. Through either door an answer to another call is refused,
// and so is a second answer.
//
//behaviour:shows E3
func TestAnApprovalIsAnsweredThroughHTTPAndNATS(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	dir, agents := t.TempDir(), writeHandAgents(t)
	h, w := startWeb(t, func(c *Config) { c.Roots = []string{dir, agents} })
	c := connectClient(t, h)
	id := beginRun(t, c, client.RunRequest{Agent: "hand", Agents: agents, Dir: dir, Model: writeScript(t, twoCommands)})
	overHTTP := func(body string) int {
		code, _, _ := w.send(w.request("POST", "/api/v1/runs/"+id+"/answer", body))
		return code
	}
	nc := connectRole(t, h, bus.RoleClient)
	overNATS := func(body string) string {
		t.Helper()
		reply, err := nc.Request("troupe.cmd.answer", []byte(body), patience)
		if err != nil {
			t.Fatal(err)
		}
		return reply.Header.Get("Nats-Service-Error-Code")
	}
	answer := func(q client.Question, digest string) string {
		raw, err := json.Marshal(client.AnswerRequest{RunID: id, Request: client.NewID(), Query: q.Query, Decision: "approve", Digest: digest})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	first := parkedQuestion(t, c, id)
	other := fmt.Sprintf("%064d", 0)
	if code := overHTTP(answer(first, other)); code != http.StatusConflict {
		t.Errorf("an answer to another call over HTTP: %d", code)
	}
	if code := overNATS(answer(first, other)); code != client.CodeConflict {
		t.Errorf("an answer to another call over NATS: %q", code)
	}
	if fileExists(t, dir, "first") {
		t.Fatal("the command has run")
	}
	if code := overHTTP(answer(first, first.Digest)); code != http.StatusOK {
		t.Fatalf("the answer over HTTP: %d", code)
	}
	waitUntil(t, "the first command has run", func() bool { return fileExists(t, dir, "first") })
	second := parkedQuestion(t, c, id)
	if code := overNATS(answer(first, first.Digest)); code == "" {
		t.Error("the first question took a second answer")
	}
	if code := overNATS(answer(second, second.Digest)); code != "" {
		t.Fatalf("the answer over NATS: %q", code)
	}
	waitFinished(t, c, id, spec.Completed)
	if !fileExists(t, dir, "second") {
		t.Error("the second command has not run")
	}
}
