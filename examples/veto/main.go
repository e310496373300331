// Package main shows the stop veto: an agent claims that it is done, the policy of
// its run names what is missing, and the agent continues.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
)

const replies = `
agents:
  analyst:
    - text: The build is broken.
    - text: "The build is broken. Evidence: ci.log:42"
`

// policy is data: it stands in the run's log, so a replay gives the same verdicts.
var policy = supervisor.Policy{Version: 1, Rules: []supervisor.Rule{{
	Name: "evidence", On: "stop",
	When: []supervisor.Condition{{Fact: "answer", Op: "lacks", Text: "Evidence:"}},
	Why:  "Name the evidence.",
}}}

func main() {
	if err := analyze(memory.New(memory.Config{})); err != nil {
		log.Fatal(err)
	}
}

func analyze(logs mailbox.Post) error {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	over := make(chan event.Result, 1)
	node, err := actors.Start(context.Background(), actors.Config{
		Post:     logs,
		Lease:    1, // the first owner of these logs
		Model:    func(string) (model.Client, string, error) { return scripted.Client(""), "script", nil },
		OnResult: func(_ string, r event.Result) { over <- r },
		OnEvent: func(e event.Published) {
			if note, ok := e.Data.(event.Stop); ok {
				fmt.Println(strings.TrimSpace(e.Kind + " " + note.Why))
			}
		},
	})
	if err != nil {
		return err
	}
	defer node.Stop()

	err = node.Open(context.Background(), supervisor.Opened{
		Run: "why", Goal: "Why is it red?", Root: "analyst", Policy: policy,
		Definitions: []supervisor.Definition{{Name: "analyst", System: "You are the analyst."}},
		Model:       spec.Model{Name: "script/why"},
		Limits:      spec.RunLimits{Tokens: 20_000},
	})
	if err != nil {
		return err
	}
	r := <-over
	fmt.Println(r.Text)
	fmt.Println(r.Reason)
	return nil
}
