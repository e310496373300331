package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/a2aclient"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// foreignTimeout bounds a call of an agent of another program, unless the operator's rule about the tool delegate says
// otherwise.
const foreignTimeout = 10 * time.Minute

// unknownCostMetric counts a call without a reported cost, in the log and the report of a run.
const unknownCostMetric = "cost_unknown"

// AgentCall is a task for an agent of another program.
type AgentCall struct {
	Name string // HARNESS/OWNER/NAME, or a2a/NAME
	Task string
	// Key is the same when the same call runs again.
	Key string
	// Answers is the ID of the AgentQuestion that the task answers; "": it is a new task.
	Answers string
	// Trace is the W3C traceparent of the call, which the agent gets; it may be empty.
	Trace string
	// Progress gets the words of the agent about its work, unchecked. It may be called at any rate.
	Progress func(words string)
}

// AgentQuestion is the error of a call whose agent asks, and waits for a call that answers.
type AgentQuestion struct{ ID, Text string }

func (q *AgentQuestion) Error() string { return "the agent asks: " + q.Text }

// Bounds of the progress of an agent of another program.
const (
	progressPause = 500 * time.Millisecond // between two reports that are passed on
	progressBytes = 200                    // of a report
)

// foreignAgents is the tool that calls agents of other programs: the loop passes a delegation to one of
// them on as a call of a tool.
type foreignAgents struct {
	names   []string
	call    func(ctx context.Context, c AgentCall) (string, error)
	timeout time.Duration
	mask    *redact.Masker
	// isMember: the caller represents the agent, so that a question becomes a result that it reads. charged: the run
	// has booked the stated charge of the call.
	isMember, charged bool
}

var (
	errNotForeign  = errors.New("toolset: the agent file of this agent does not name it; nothing was sent")
	errNoAgentCall = errors.New("toolset: this node cannot call agents of other programs; nothing was sent")
)

// foreignTools returns the tool that calls agents of other programs, if the task names any.
func (b *Builder) foreignTools(t spec.Task, mask *redact.Masker) []tool.Tool {
	if len(t.Foreign) == 0 {
		return nil
	}
	f := foreignAgents{names: t.Foreign, call: b.cfg.CallAgent, timeout: foreignTimeout, mask: mask,
		isMember: slices.Equal(t.Foreign, []string{t.Name}), charged: t.ChargeNano > 0}
	if rule := b.OperatorRule(f.Spec().Name); rule.Timeout > 0 {
		f.timeout = rule.Timeout
	}
	return []tool.Tool{f}
}

// UnknownAgents returns those of these delegates that are agents of the protocol A2A and that this node cannot call.
func (b *Builder) UnknownAgents(delegates []string) (unknown []string) {
	for _, name := range delegates {
		if a2aclient.IsName(name) && !slices.Contains(b.cfg.A2AAgents, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// Spec describes the tool as the loop does, with the class that its calls have here.
func (f foreignAgents) Spec() model.ToolSpec {
	s := agent.DelegateSpec("", true)
	s.Class = model.Effect
	return s
}

// Limits of a call.
func (f foreignAgents) Limits() tool.Limits { return tool.Limits{Timeout: f.timeout} }

// Call gives the task to the agent and waits for its answer. Secrets that the node knows do not leave the machine.
func (f foreignAgents) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	var args struct {
		Agent, Task, Question string
		Schema                json.RawMessage
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tool.Result{}, fmt.Errorf("toolset: delegate: %w", err)
	}
	fits, err := readAnswerSchema(args.Schema)
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case !slices.Contains(f.names, args.Agent): // a hook may have changed the name
		return tool.Result{}, fmt.Errorf("%.200q: %w", args.Agent, errNotForeign)
	case f.call == nil:
		return tool.Result{}, errNoAgentCall
	}
	if !f.charged {
		c.Metric(unknownCostMetric, 1)
	}
	text, err := f.call(ctx, AgentCall{Name: args.Agent, Task: f.mask.MaskText(args.Task + fits.request()), Key: c.Key, Trace: c.Trace, Answers: args.Question, Progress: f.passProgress(c.Progress)})
	var asked *AgentQuestion
	switch {
	case errors.As(err, &asked) && f.isMember:
		return tool.Result{Text: orchestrator.WriteQuestion(asked.ID, asked.Text)}, nil
	case errors.As(err, &asked):
		return tool.Result{Text: text}, fmt.Errorf("%s: the agent asked a question and nobody answers it during a call; "+
			"what it did before is unknown. Call it again with a task that answers the question: %q", args.Agent, asked.Text)
	}
	if err == nil {
		text, err = fits.check(text)
	}
	return tool.Result{Text: text}, err
}

// answerSchema is the schema that an answer must fit; the zero value is none.
type answerSchema struct {
	text     string
	compiled *schema.Schema
}

var errNotFitting = errors.New("the agent has done the task, and its answer does not fit the schema")

// readAnswerSchema reads the schema of a delegation: an object, or one as a text. The loop has
// refused one that cannot be used.
func readAnswerSchema(raw json.RawMessage) (a answerSchema, err error) {
	if a.text = strings.TrimSpace(string(raw)); a.text == "" || a.text == "null" {
		return answerSchema{}, nil
	}
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		a.text = quoted
	}
	if a.compiled, err = schema.Compile(a.text); err != nil {
		return a, fmt.Errorf("toolset: the schema of the answer cannot be used, and nothing was sent: %w", err)
	}
	return a, nil
}

// request is the text about the schema in the task of the agent.
func (a answerSchema) request() string {
	if a.compiled == nil {
		return ""
	}
	return "\n\nAnswer with one JSON value that fits this JSON Schema, and with nothing else:\n" + a.text
}

// check returns the JSON of an answer that fits. Otherwise the whole answer comes with the error.
func (a answerSchema) check(answer string) (string, error) {
	if a.compiled == nil {
		return answer, nil
	}
	var v any
	text := schema.ExtractJSON(answer)
	if json.Unmarshal([]byte(text), &v) != nil {
		return answer, fmt.Errorf("%w: it is not JSON, nor has it a block of ```json", errNotFitting)
	}
	if err := a.compiled.Validate(v); err != nil {
		return answer, fmt.Errorf("%w: %w", errNotFitting, err)
	}
	return text, nil
}

// passProgress passes words of the agent on to those who watch, cleaned, shortened and not too often.
func (f foreignAgents) passProgress(pass func(tool.Progress)) func(string) {
	var mu sync.Mutex
	var last string
	var at time.Time
	return func(words string) {
		mu.Lock()
		defer mu.Unlock()
		if words == last || time.Since(at) < progressPause {
			return
		}
		last, at = words, time.Now()
		pass(tool.Progress{Message: clip.Marked(permission.VisibleLine(f.mask.MaskText(words)), progressBytes, "…")})
	}
}
