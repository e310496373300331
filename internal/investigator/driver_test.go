package investigator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/model"
)

// toolFunc is a tool as the driver runs it.
type toolFunc func(args map[string]any) (text string, failed bool)

// agentDriver is the smallest agent loop: reply, tools, reply, until there are no
// calls. Children run like any other tool.
type agentDriver struct {
	t         testing.TB
	client    model.Client
	tools     map[string]toolFunc
	maxOutput int64
	turnsMax  int // 0: no cap; a capped agent gets a closing turn

	mu     sync.Mutex
	tokens map[string]int64
	turns  map[string]int
	peak   map[string]int // bytes of tool results of an agent
	// turnPeak is the most of them in one turn.
	turnPeak map[string]int
	texts    map[string]string
}

func newDriver(t testing.TB, tools map[string]toolFunc) *agentDriver {
	return &agentDriver{t: t, client: investigator.New(), tools: tools, maxOutput: 4096,
		tokens: map[string]int64{}, turns: map[string]int{}, peak: map[string]int{}, turnPeak: map[string]int{}, texts: map[string]string{}}
}

func (d *agentDriver) totalTokens() (n int64) {
	for _, v := range d.tokens {
		n += v
	}
	return n
}

func agentNamed(name string) investigator.Agent {
	all := investigator.BuiltinAgents()
	return all[slices.IndexFunc(all, func(a investigator.Agent) bool { return a.Name == name })]
}

const loopMax = 40

// runAgent plays one agent to its end and returns its final text.
func (d *agentDriver) runAgent(name, task string) string {
	def := agentNamed(name)
	req := model.Request{System: def.System, Caller: model.Caller{Name: def.Name}, MaxOutput: d.maxOutput, Messages: []model.Message{{Role: model.User, Text: task}}}
	for _, n := range def.Tools {
		if n == "delegate" || d.tools[n] != nil {
			req.Tools = append(req.Tools, toolSpecs([]string{n})...)
		}
	}
	return d.runLoop(name, req)
}

func (d *agentDriver) runLoop(name string, req model.Request) string {
	for turn := 1; turn <= loopMax; turn++ {
		if d.turnsMax > 0 && turn > d.turnsMax {
			req.NoTools = true
			req.Messages = append(req.Messages, model.Message{Role: model.User, Text: "Stop here: the limit on turns is reached. Say what you found so far."})
		}
		reply := d.completeChecked(name, req)
		if len(reply.Message.Calls) == 0 {
			return reply.Message.Text
		}
		for i := range reply.Message.Calls {
			reply.Message.Calls[i].ID = fmt.Sprintf("%d-%d", turn, i)
		}
		results := make([]model.ToolResult, len(reply.Message.Calls))
		var wg sync.WaitGroup
		for i, c := range reply.Message.Calls {
			wg.Go(func() { results[i] = d.callTool(c) })
		}
		wg.Wait()
		d.mu.Lock()
		turnBytes := 0
		for _, r := range results {
			turnBytes += len(r.Text)
		}
		d.peak[name] += turnBytes
		d.turnPeak[name] = max(d.turnPeak[name], turnBytes)
		d.mu.Unlock()
		req.Messages = append(req.Messages, reply.Message, model.Message{Role: model.ToolRole, Results: results})
	}
	d.t.Errorf("%s went on for ever", name)
	return ""
}

// completeChecked makes one call and checks what holds for every reply.
func (d *agentDriver) completeChecked(name string, req model.Request) model.Reply {
	streamed := ""
	reply, err := d.client.Complete(context.Background(), req, func(delta model.Delta) { streamed += delta.Text })
	if err != nil {
		d.t.Fatalf("%s: %v", name, err)
	}
	if streamed != reply.Message.Text {
		d.t.Errorf("%s: what was streamed is not what was said", name)
	}
	if !reply.UsageKnown || reply.Usage.Output > req.MaxOutput || reply.Usage.Input <= 0 {
		d.t.Errorf("%s: usage %+v with a limit of %d", name, reply.Usage, req.MaxOutput)
	}
	for _, c := range reply.Message.Calls {
		offered := slices.ContainsFunc(req.Tools, func(s model.ToolSpec) bool { return s.Name == c.Name })
		if !offered || req.NoTools {
			d.t.Errorf("%s called %s, which was not offered", name, c.Name)
		}
		if !json.Valid([]byte(c.Args)) {
			d.t.Errorf("%s: arguments are not JSON: %s", name, c.Args)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens[name] += reply.Usage.Total()
	d.turns[name]++
	d.texts[name] = reply.Message.Text
	return reply
}

func (d *agentDriver) callTool(c model.ToolCall) model.ToolResult {
	var args map[string]any
	if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
		return model.ToolResult{Call: c.ID, Text: err.Error(), Error: true}
	}
	if c.Name == "delegate" && d.tools["delegate"] == nil {
		agent, _ := args["agent"].(string)
		task, _ := args["task"].(string)
		return model.ToolResult{Call: c.ID, Text: d.runAgent(agent, task)}
	}
	tool := d.tools[c.Name]
	if tool == nil {
		return model.ToolResult{Call: c.ID, Text: "unknown tool " + c.Name, Error: true}
	}
	text, failed := tool(args)
	return model.ToolResult{Call: c.ID, Text: text, Error: failed}
}
