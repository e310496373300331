package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
)

// floorMessage is a message in the form of Chat Completions.
type floorMessage struct {
	Role    string      `json:"role"`
	Content string      `json:"content"`
	Calls   []floorCall `json:"tool_calls,omitempty"`
	CallID  string      `json:"tool_call_id,omitempty"`
}

type floorCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func newFloorCall(id, name, args string) floorCall {
	c := floorCall{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, args
	return c
}

type (
	floorModel func(ctx context.Context, history []floorMessage) (floorMessage, error)
	floorTool  func(ctx context.Context, args string) (string, error)
)

const childName = "helper"

// floor is the least that an agent is: a loop around a model and a map of tools.
type floor struct {
	model floorModel
	tools map[string]floorTool
	setup setup
	runs  atomic.Int64
}

func openFloor(_ context.Context, s setup) (runner, error) {
	f := &floor{setup: s, model: scriptedFloorModel(s)}
	if s.url != "" {
		f.model = newFloorClient(s).complete
	}
	f.tools = map[string]floorTool{
		lookName: func(_ context.Context, args string) (string, error) {
			var a lookArgs
			if err := json.Unmarshal([]byte(args), &a); err != nil {
				return "", fmt.Errorf("floor: arguments: %w", err)
			}
			return lookUp(a.Row), nil
		},
		childName: func(ctx context.Context, args string) (string, error) {
			child := &floor{setup: setup{}, model: scriptedFloorModel(setup{script: script{kind: scriptLook, count: 1}})}
			return child.loop(ctx, args, nil)
		},
	}
	return f, nil
}

// scriptedFloorModel plays the script in the process.
func scriptedFloorModel(s setup) floorModel {
	return func(ctx context.Context, history []floorMessage) (floorMessage, error) {
		if s.script.kind == scriptWait {
			s.waiting()
			<-ctx.Done()
			return floorMessage{}, ctx.Err()
		}
		result := ""
		if last := history[len(history)-1]; last.Role == "tool" {
			result = last.Content
		}
		r := s.script.next(result)
		m := floorMessage{Role: "assistant", Content: r.text}
		if r.row > 0 {
			m.Calls = []floorCall{newFloorCall("c"+strconv.Itoa(r.row), lookName, lookJSON(r.row))}
		}
		for i := range r.children {
			m.Calls = append(m.Calls, newFloorCall("d"+strconv.Itoa(i), childName, fmt.Sprintf(`{"task":%q}`, childTask(i))))
		}
		return m, nil
	}
}

func (f *floor) run(ctx context.Context) error {
	keep, finish, err := f.openLog()
	if err != nil {
		return err
	}
	text, err := f.loop(ctx, "do it", keep)
	if err := finish(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return checkAnswer(text)
}

// loop is the agent. keep receives each message before the next step.
func (f *floor) loop(ctx context.Context, task string, keep func(floorMessage) error) (string, error) {
	history := []floorMessage{{Role: "user", Content: task}}
	for {
		reply, err := f.model(ctx, history)
		if err != nil {
			return "", err
		}
		history = append(history, reply)
		if err := keepMessages(keep, reply); err != nil {
			return "", err
		}
		if len(reply.Calls) == 0 {
			return reply.Content, nil
		}
		results, err := f.callTools(ctx, reply.Calls)
		if err != nil {
			return "", err
		}
		history = append(history, results...)
		if err := keepMessages(keep, results...); err != nil {
			return "", err
		}
	}
}

func keepMessages(keep func(floorMessage) error, messages ...floorMessage) error {
	if keep == nil {
		return nil
	}
	for _, m := range messages {
		if err := keep(m); err != nil {
			return err
		}
	}
	return nil
}

// callTools runs the calls of one reply, several at the same time.
func (f *floor) callTools(ctx context.Context, calls []floorCall) ([]floorMessage, error) {
	results, errs := make([]floorMessage, len(calls)), make([]error, len(calls))
	call := func(i int) {
		var text string
		text, errs[i] = f.tools[calls[i].Function.Name](ctx, calls[i].Function.Arguments)
		results[i] = floorMessage{Role: "tool", Content: text, CallID: calls[i].ID}
	}
	if len(calls) == 1 {
		call(0)
		return results, errs[0]
	}
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() { call(i) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// openLog opens a file for the messages of one agent, if the workload asks for a store. The
// synced one is synced after each message.
func (f *floor) openLog() (keep func(floorMessage) error, finish func() error, err error) {
	if f.setup.store == storeDefault {
		return nil, func() error { return nil }, nil
	}
	file, err := os.Create(filepath.Join(f.setup.dir, fmt.Sprintf("agent-%d.jsonl", f.runs.Add(1))))
	if err != nil {
		return nil, nil, fmt.Errorf("floor: %w", err)
	}
	return func(m floorMessage) error {
		line, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		if _, err := file.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		if f.setup.store == storeSynced {
			return file.Sync()
		}
		return nil
	}, file.Close, nil
}

func (f *floor) close() error { return nil }
