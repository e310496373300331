// Package main shows the stop veto: an agent claims that it is done, the policy of
// its run names what is missing, and the agent continues.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/agent/event"
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
	if err := analyze(context.Background(), ""); err != nil {
		log.Fatal(err)
	}
}

// analyze keeps its logs in a directory; "": in one that it removes.
func analyze(ctx context.Context, stateDir string) (err error) {
	scripted, err := script.Parse([]byte(replies))
	if err != nil {
		return err
	}
	node, err := troupe.Start(ctx, troupe.Config{
		StateDir: stateDir,
		Agents:   []troupe.Agent{{Name: "analyst", Description: "Finds causes."}},
		Models:   map[string]model.Client{"script/why": scripted.Client("")},
		Model:    "script/why",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()

	for e, err := range node.Stream(ctx, troupe.Task{Prompt: "Why is it red?", Policy: &policy}) {
		if err != nil {
			return err
		}
		switch data := e.Data.(type) {
		case event.Stop:
			fmt.Println(strings.TrimSpace(e.Kind + " " + data.Why))
		case event.Result:
			fmt.Println(data.Text)
			fmt.Println(data.Reason)
		}
	}
	return nil
}
