package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/troupe-run/troupe/actors"
	"github.com/troupe-run/troupe/actors/life"
	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/gateway"
	"github.com/troupe-run/troupe/mailbox/jetstream"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
)

// node is a set of actors whose logs are in a directory.
type node struct {
	*actors.Node
	run   supervisor.Opened
	close func()
}

// open takes the directory, starts a NATS server in it and actors on that.
func open(dir, delay string, events func(life.Event), over func(string, supervisor.Result)) (*node, error) {
	ctx := context.Background()
	scripted, err := script.Parse(fmt.Appendf(nil, replies, delay))
	if err != nil {
		return nil, err
	}
	tools, err := counting(filepath.Join(dir, "calls"))
	if err != nil {
		return nil, err
	}
	server, err := bus.StartEmbedded(bus.EmbeddedConfig{StateDir: dir, Port: bus.FreePort})
	if err != nil {
		return nil, err
	}
	nc, err := server.Connect(bus.RoleNode)
	if err != nil {
		return nil, err
	}
	post, err := jetstream.Open(ctx, nc, jetstream.Config{})
	if err != nil {
		return nil, err
	}
	buckets, err := bus.ConnectBuckets(ctx, nc, bus.BucketConfig{})
	if err != nil {
		return nil, err
	}
	// Each owner gets a higher number: its lives are newer than all before.
	lease, err := gateway.Own(ctx, buckets, fmt.Sprint(os.Getpid()))
	if err != nil {
		return nil, err
	}
	n := &node{run: supervisor.Opened{Run: "crash", Goal: "Count once", Root: "clerk", Rules: agent.Rules,
		Definitions: []supervisor.Definition{{Name: "clerk", System: "agent: clerk"}},
		Tools:       tools.Specs(), Model: agent.Model{Name: "script/crash"}, Limits: supervisor.Limits{Tokens: 20_000}}}
	n.Node, err = actors.Start(ctx, actors.Config{Post: post, Lease: lease, Events: events, Over: over,
		Model: func(string) (model.Client, string, error) { return scripted.Client(""), "script", nil },
		Tools: func(agent.Task) (*tool.Set, error) { return tools, nil }})
	n.close = func() {
		n.Stop()
		if err := errors.Join(post.Close(), server.Close()); err != nil {
			fmt.Println(err)
		}
	}
	return n, err
}

// counting is a tool that leaves a trace each time it runs.
func counting(path string) (*tool.Set, error) {
	count, err := tool.New("count", "Count.", model.Effect, func(context.Context, struct{}, tool.Call) (string, error) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		_, err = f.WriteString("called\n")
		return "counted", errors.Join(err, f.Close())
	})
	if err != nil {
		return nil, err
	}
	return tool.NewSet(count)
}

// heard reads on until a line comes.
func heard(r io.Reader, line string) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if lines.Text() == line {
			return nil
		}
	}
	return fmt.Errorf("no %q: %w", line, lines.Err())
}
