package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/troupe-run/troupe"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Limits high enough that no workload reaches them.
const (
	tokensMax = 1 << 40
	callsMax  = 1 << 30
)

// turnsMax is the limit of turns of an agent that takes a number of turns: so high that the agent is not told that
// the limit is near.
func turnsMax(turns int) int { return 2*turns + 8 }

// entry is a node as a program embeds it.
type entry struct {
	node *troupe.Node
	task troupe.Task
}

// Routes of the models of a program.
const (
	ownProvider = "own/"
	httpRoute   = "openai/"
)

func openEntry(ctx context.Context, s setup) (runner, error) { return openNode(ctx, s, "") }

func openEntryJetStream(ctx context.Context, s setup) (runner, error) {
	return openNode(ctx, s, "jetstream")
}

func openNode(ctx context.Context, s setup, logs string) (runner, error) {
	cfg := troupe.Config{
		LogStore: logs,
		Tools:    []tool.Tool{newTroupeLook()},
		Agents: []troupe.Agent{{Name: "boss", Description: "Looks.", Prompt: agentPrompt},
			{Name: childName, Description: "Helps.", Prompt: agentPrompt, Model: ownProvider + childModelName}},
		Models:      map[string]model.Client{ownProvider + s.script.name: troupeModel{s}, ownProvider + childModelName: childModel()},
		Model:       ownProvider + s.script.name,
		MaxLiveRuns: max(s.agents, 2000),
		Env:         func(string) string { return "" },
	}
	if s.url != "" {
		cfg.Model = httpRoute + s.script.name
		cfg.Env = func(name string) string {
			if name == "OPENAI_BASE_URL" {
				return s.url
			}
			return ""
		}
	}
	if s.store == storeSynced {
		cfg.StateDir = filepath.Join(s.dir, "state")
	}
	node, err := troupe.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	task := troupe.Task{Prompt: "do it", MaxTurns: turnsMax(s.script.count), MaxTokens: tokensMax, MaxToolCalls: callsMax}
	if s.script.kind == scriptFan {
		task.MaxChildren, task.MaxAgents = s.script.count, s.script.count+1
	}
	return &entry{node: node, task: task}, nil
}

// run asks for the same run again when the node was too busy for longer than the client has
// patience.
func (e *entry) run(ctx context.Context) error {
	id := client.NewID()
	err := e.runTask(ctx, id)
	for (client.Busy(err) || errors.Is(err, client.ErrUnavailable)) && ctx.Err() == nil {
		err = e.runTask(ctx, id)
	}
	return err
}

// runTask runs the task once.
func (e *entry) runTask(ctx context.Context, id string) error {
	task := e.task
	task.RunID = id
	result, err := e.node.Run(ctx, task)
	if err == nil && !strings.HasPrefix(result.Text, answerText) {
		err = fmt.Errorf("%w %q", errAnswer, result.Text)
	}
	return err
}

func (e *entry) close() error { return e.node.Close() }
