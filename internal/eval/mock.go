package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// toolMocks are the tools of a trial: they answer as the case says, in order, and record that
// they ran. They live as long as the trial, so that a restarted node finds the world
// unchanged.
type toolMocks struct {
	c       *Case
	onCall  func(name string, c tool.Call) // told of each run as it begins
	cancels *cancelWait

	mu              sync.Mutex
	runsByTool      map[string]int // runs by tool
	runsByCall      map[string]int // those that got an answer for one call, by tool and call
	runsInOrder     map[string]int // those that got, or lacked, an answer for the next call
	overcalledTools []string       // calls beyond the answers of the case
}

func newToolMocks(c *Case, cancels *cancelWait, onCall func(name string, c tool.Call)) *toolMocks {
	return &toolMocks{c: c, cancels: cancels, onCall: onCall, runsByTool: map[string]int{}, runsByCall: map[string]int{}, runsInOrder: map[string]int{}}
}

// newToolSet makes the tools of one agent.
func (m *toolMocks) newToolSet(t spec.Task) (*tool.Set, error) {
	var tools []tool.Tool
	for _, toolSpec := range t.Tools {
		// A call of delegate reaches a tool if the agent is one of another program.
		if _, ok := servedTools()[toolSpec.Name]; !ok || len(m.c.MockedTools[toolSpec.Name]) > 0 {
			tools = append(tools, &toolMock{all: m, toolSpec: toolSpec, about: m.c.Tools[toolSpec.Name]})
		}
	}
	return tool.NewSet(tools...)
}

// nextAnswer returns the answer to one more call of a tool: the next that is for this call alone, else the
// next that is for no call.
func (m *toolMocks) nextAnswer(name, call string) (MockAnswer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runsByTool[name]++
	var own, list []MockAnswer
	for _, a := range m.c.MockedTools[name] {
		switch a.Answers {
		case call:
			own = append(own, a)
		case "":
			list = append(list, a)
		}
	}
	if n := m.runsByCall[name+" "+call]; n < len(own) {
		m.runsByCall[name+" "+call]++
		return own[n], true
	}
	n := m.runsInOrder[name]
	m.runsInOrder[name]++
	switch {
	case n < len(list):
		return list[n], true
	case m.c.Tools[name].Repeat && len(list) > 0:
		return list[len(list)-1], true
	}
	if !slices.Contains(m.overcalledTools, name) {
		m.overcalledTools = append(m.overcalledTools, name)
	}
	return MockAnswer{}, false
}

// countRuns returns a copy of the counts so far.
func (m *toolMocks) countRuns() (ran map[string]int, excess []string, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ran = map[string]int{}
	for name, n := range m.runsByTool {
		ran[name] = n
		all += n
	}
	return ran, slices.Clone(m.overcalledTools), all
}

// callName names a call within its run.
func callName(c tool.Call) string { return c.Agent + "/" + c.ID }

type toolMock struct {
	all      *toolMocks
	toolSpec model.ToolSpec
	about    MockTool
}

func (t *toolMock) Spec() model.ToolSpec { return t.toolSpec }

// Limits are those that the case names.
func (t *toolMock) Limits() tool.Limits {
	return tool.Limits{Timeout: time.Duration(t.about.Timeout), Schema: t.about.output}
}

// errMock: the case has no more answers for this mocked tool.
var errMock = errors.New("eval: the case has no more answers of this tool")

// Call answers as the case says.
func (t *toolMock) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, ok := t.all.nextAnswer(t.toolSpec.Name, callName(c))
	wait := t.all.cancels.begin(Point{After: MockCalled, Of: callName(c)}, c.Agent)
	t.all.onCall(t.toolSpec.Name, c)
	if !ok {
		return tool.Result{}, errMock
	}
	if err := pause(ctx, time.Duration(a.Delay)); err != nil {
		return tool.Result{}, err
	}
	wait(ctx)
	switch a.Status {
	case Error:
		return tool.Result{}, errors.New(a.failureReason())
	case Retryable:
		return tool.Result{}, transientError(a.failureReason())
	case Malformed:
		return tool.Result{Text: a.resultText("\xff\xfe\x00{\"unfinished\": ")}, nil
	case Hangs:
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	case Crashes:
		panic(a.failureReason())
	}
	return tool.Result{Text: a.resultText("")}, nil
}

func (a MockAnswer) failureReason() string {
	if a.Reason != "" {
		return a.Reason
	}
	return string(a.Status)
}

// resultText is what the model reads about a successful call.
func (a MockAnswer) resultText(without string) string {
	text := a.resultBody(without)
	if fill := min(a.Size, answerMax) - len(text); fill > 0 {
		text += strings.Repeat(" and so on", fill/10+1)[:fill]
	}
	return text
}

const answerMax = 1 << 20

func (a MockAnswer) resultBody(without string) string {
	v := a.Result
	if v == nil && len(a.Fields) > 0 {
		v = a.Fields
	}
	switch v := v.(type) {
	case nil:
		return without
	case string:
		return v
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// pause waits for a duration, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// transientError is a temporary failure.
func transientError(reason string) error { return tool.Transient(errors.New(reason)) }
