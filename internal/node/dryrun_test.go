package node

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// A dry run over NATS and over HTTP answers with what the run would be opened with, and leaves no run and no log.
func TestADryRunBeginsNothing(t *testing.T) {
	t.Parallel()
	h, web := startWeb(t)
	c := connectClient(t, h)
	request := client.RunRequest{RunID: client.NewID(), Prompt: "hello", Model: writeScript(t, echo), Conversation: "plans", MaxTurns: 3, DryRun: true}
	over := map[string]func() (client.RunAccepted, error){
		"NATS": func() (client.RunAccepted, error) { return c.Run(testContext(t), request) },
		"HTTP": func() (a client.RunAccepted, err error) {
			body, err := json.Marshal(request)
			if err != nil {
				return a, err
			}
			web.post("/api/v1/runs", string(body), http.StatusOK, &a)
			return a, nil
		},
	}
	for door, ask := range over {
		a, err := ask()
		if err != nil || a.Preview == nil || a.Preview.Goal != "hello" || a.Preview.RootTurns != 3 || a.Preview.StopReason != "" || len(a.Preview.Agents) != 1 || len(a.Preview.Tools) == 0 {
			t.Errorf("over %s: %+v, %v", door, a, err)
		}
	}
	short := request
	short.MaxTokens = 5
	if a, err := c.Run(testContext(t), short); err != nil || a.Preview == nil || a.Preview.StopReason != spec.TokenBudget || a.Preview.Detail == "" {
		t.Errorf("with 5 tokens: %+v, %v", a, err)
	}
	for name, change := range map[string]func(*client.RunRequest){
		"zone": func(r *client.RunRequest) { r.Zone = "UTC" }, "missed": func(r *client.RunRequest) { r.Missed = "skip" },
		"instead": func(r *client.RunRequest) { r.Instead = "x" }, "layers": func(r *client.RunRequest) { r.Layers = []spec.Layer{{Name: "a", Text: "b"}} },
		"at": func(r *client.RunRequest) { r.At = "+1h" }, "fork": func(r *client.RunRequest) { r.Fork = "other" },
	} {
		refused := request
		change(&refused)
		if a, err := c.Run(testContext(t), refused); err == nil {
			t.Errorf("a dry run with %s: %+v; a run is refused", name, a)
		}
	}
	if list, err := c.List(testContext(t)); err != nil || len(list) != 0 {
		t.Errorf("%d runs, %v; want none", len(list), err)
	}
	request.DryRun = false
	if a, err := c.Run(testContext(t), request); err != nil || a.Existed || a.Preview != nil {
		t.Errorf("the run after its dry run: %+v, %v", a, err)
	}
	waitFinished(t, c, request.RunID, spec.Completed)
	request.DryRun = true
	_, err := c.Run(testContext(t), request)
	checkRefusal(t, "a run that exists", err, client.CodeConflict, "exists already")
}
