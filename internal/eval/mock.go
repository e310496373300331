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

// mocks are the tools of a trial: they answer as the case says, in order, and record that
// they ran. They live as long as the trial, so that a restarted node finds the world
// unchanged.
type mocks struct {
	c      *Case
	called func(name string) // told of each run as it begins

	mu     sync.Mutex
	ran    map[string]int // runs by tool
	excess []string       // calls beyond the answers of the case
}

// set makes the tools of one agent.
func (m *mocks) set(t spec.Task) (*tool.Set, error) {
	var tools []tool.Tool
	for _, toolSpec := range t.Tools {
		if _, ok := own[toolSpec.Name]; !ok {
			tools = append(tools, &mock{all: m, toolSpec: toolSpec, about: m.c.Tools[toolSpec.Name]})
		}
	}
	return tool.NewSet(tools...)
}

// next returns the answer to one more call of a tool.
func (m *mocks) next(name string) (Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, n := m.c.MockedTools[name], m.ran[name]
	m.ran[name]++
	switch {
	case n < len(list):
		return list[n], true
	case m.c.Tools[name].Repeat && len(list) > 0:
		return list[len(list)-1], true
	}
	if !slices.Contains(m.excess, name) {
		m.excess = append(m.excess, name)
	}
	return Answer{}, false
}

// runs returns a copy of the counts so far.
func (m *mocks) runs() (ran map[string]int, excess []string, all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ran = map[string]int{}
	for name, n := range m.ran {
		ran[name] = n
		all += n
	}
	return ran, slices.Clone(m.excess), all
}

type mock struct {
	all      *mocks
	toolSpec model.ToolSpec
	about    Tool
}

func (t *mock) Spec() model.ToolSpec { return t.toolSpec }

// Limits are those that the case names.
func (t *mock) Limits() tool.Limits {
	return tool.Limits{Timeout: time.Duration(t.about.Timeout), Schema: t.about.output}
}

// errMock: the case has no more answers for this mocked tool.
var errMock = errors.New("eval: the case has no more answers of this tool")

// Call answers as the case says.
func (t *mock) Call(ctx context.Context, _ tool.Call) (tool.Result, error) {
	a, ok := t.all.next(t.toolSpec.Name)
	t.all.called(t.toolSpec.Name)
	if !ok {
		return tool.Result{}, errMock
	}
	if err := pause(ctx, time.Duration(a.Delay)); err != nil {
		return tool.Result{}, err
	}
	switch a.Status {
	case Error:
		return tool.Result{}, errors.New(a.reason())
	case Retryable:
		return tool.Result{}, transient(a.reason())
	case Malformed:
		return tool.Result{Text: a.text("\xff\xfe\x00{\"unfinished\": ")}, nil
	case Hangs:
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	case Crashes:
		panic(a.reason())
	}
	return tool.Result{Text: a.text("")}, nil
}

func (a Answer) reason() string {
	if a.Reason != "" {
		return a.Reason
	}
	return string(a.Status)
}

// text is what the model reads about a successful call.
func (a Answer) text(without string) string {
	text := a.said(without)
	if fill := min(a.Size, answerMax) - len(text); fill > 0 {
		text += strings.Repeat(" and so on", fill/10+1)[:fill]
	}
	return text
}

const answerMax = 1 << 20

func (a Answer) said(without string) string {
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

// transient is a failure that may pass.
func transient(reason string) error { return tool.Transient(errors.New(reason)) }
