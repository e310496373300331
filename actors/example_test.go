package actors_test

import (
	"context"
	"fmt"
	"log"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
)

// The runtime alone: a run whose logs are in memory, without NATS, directories, agent files and the choice of a model.
func ExampleStart() {
	scripted, err := script.Parse([]byte(`agents: {greeter: [{text: "Salve, world!"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	results := make(chan event.Result, 1)
	node, err := actors.Start(context.Background(), actors.Config{
		Post:     memory.New(memory.Config{}),
		Lease:    1, // the first owner of these logs
		Model:    func(string) (model.Client, string, error) { return scripted.Client(""), "script", nil },
		OnResult: func(_ string, r event.Result) { results <- r },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Stop()

	err = node.Open(context.Background(), supervisor.Opened{
		Run: "hello", Goal: "Greet the world in Latin", Root: "greeter",
		Definitions: []supervisor.Definition{{Name: "greeter", System: "You are the greeter."}},
		Model:       spec.Model{Name: "script/hello"},
		Limits:      spec.RunLimits{Tokens: 20_000},
	})
	if err != nil {
		log.Fatal(err)
	}
	result := <-results
	fmt.Println(result.Text, result.Reason)
	// Output: Salve, world! completed
}
