package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/logstore/local"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/openai"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// actorsRunner runs agents on package actors, without the entry point.
type actorsRunner struct {
	node   *actors.Node
	opened supervisor.Opened
	runs   atomic.Int64
	over   sync.Map // of chan event.Result, by run
	stop   func() error
}

func openActorsMemory(ctx context.Context, s setup) (runner, error) {
	return openActors(ctx, s, memory.New(memory.Config{}), func() error { return nil })
}

// openActorsJetStream keeps the logs on an embedded server, as a node does.
func openActorsJetStream(ctx context.Context, s setup) (runner, error) {
	server, err := embedded.Start(embedded.Config{StateDir: filepath.Join(s.dir, "logs"), DontListen: true, Lazy: s.store != storeSynced})
	if err != nil {
		return nil, err
	}
	owner, err := server.Connect(bus.RoleNode)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	reader, err := server.Connect(bus.RoleNode)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	post, err := jetstream.Open(ctx, owner, jetstream.Config{Reader: reader})
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return openActors(ctx, s, post, func() error {
		err := post.Close()
		owner.Close()
		reader.Close()
		return errors.Join(err, server.Close())
	})
}

// openActorsLocal keeps the logs in files.
func openActorsLocal(ctx context.Context, s setup) (runner, error) {
	post, err := local.Open(ctx, local.Config{Dir: filepath.Join(s.dir, "files"), Lazy: s.store != storeSynced})
	if err != nil {
		return nil, err
	}
	return openActors(ctx, s, post, post.Close)
}

func openActors(ctx context.Context, s setup, post mailbox.Post, stop func() error) (runner, error) {
	look := newTroupeLook()
	set, err := tool.NewSet(look)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	client, err := newActorsClient(s)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	a := &actorsRunner{opened: openedRun(s, set.Specs()), stop: stop}
	a.node, err = actors.Start(ctx, actors.Config{Post: post, Lease: 1,
		Model: func(route string) (model.Client, string, error) {
			if route == ownProvider+childModelName {
				return childModel(), childModelName, nil
			}
			return client, s.script.name, nil
		},
		Tools:    func(spec.Task) (*tool.Set, error) { return set, nil },
		OnResult: a.takeResult,
	})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return a, nil
}

func newActorsClient(s setup) (model.Client, error) {
	if s.url == "" {
		return troupeModel{s}, nil
	}
	return openai.New(openai.Config{BaseURL: s.url})
}

// openedRun is the first entry of every run, without its name.
func openedRun(s setup, tools []model.ToolSpec) supervisor.Opened {
	o := supervisor.Opened{Goal: "do it", Root: "boss", Tools: tools,
		Definitions: []supervisor.Definition{{Name: "boss", System: agentPrompt}},
		Model:       spec.Model{Name: ownProvider + s.script.name}, RootTurns: turnsMax(s.script.count),
		Limits: spec.RunLimits{Tokens: tokensMax, Calls: callsMax}}
	if s.script.kind == scriptFan {
		o.Definitions = append(o.Definitions, supervisor.Definition{Name: childName, System: agentPrompt, Model: &spec.Model{Name: ownProvider + childModelName}})
		o.Tools = append(o.Tools, model.ToolSpec{Name: "delegate", Class: model.Read, Schema: `{"type":"object"}`})
		o.Limits.Children, o.Limits.Agents = s.script.count, s.script.count+1
		o.Agent = spec.Limits{Children: s.script.count}
	}
	return o
}

// takeResult hands a result to the caller of its run. It is called at least once for each run.
func (a *actorsRunner) takeResult(run string, r event.Result) {
	if waiting, ok := a.over.LoadAndDelete(run); ok {
		waiting.(chan event.Result) <- r
	}
}

func (a *actorsRunner) run(ctx context.Context) error {
	o := a.opened
	o.Run = fmt.Sprintf("r%d", a.runs.Add(1))
	result := make(chan event.Result, 1)
	a.over.Store(o.Run, result)
	if err := a.node.Open(ctx, o); err != nil {
		return err
	}
	select {
	case r := <-result:
		if r.Reason != spec.Completed {
			return fmt.Errorf("%w: the run ended %s: %s", errAnswer, r.Reason, r.Detail)
		}
		return checkAnswer(r.Text)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *actorsRunner) close() error {
	a.node.Stop()
	return a.stop()
}
