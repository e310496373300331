package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/model"
)

// checker holds the compiled schemas of a task's tools. It derives from the task,
// never changes, and is shared by all States of one agent.
type checker struct {
	specs   map[string]model.ToolSpec
	schemas map[string]*schema.Schema
	names   string
	answer  *schema.Schema   // of the final answer; nil: there is none, or it cannot be used
	hooks   []*regexp.Regexp // the tool pattern of each hook; nil matches all tools
}

// delegateTool is the one tool that the loop itself turns into a child agent.
const delegateTool = "delegate"

// delegateArgs are the arguments of delegate that the loop reads.
type delegateArgs struct {
	Agent, Task string
	Fork        bool // the child begins with its parent's history
	Background  bool
	Schema      json.RawMessage // of the answer
}

func compile(specs []model.ToolSpec) *checker {
	c := &checker{specs: map[string]model.ToolSpec{}, schemas: map[string]*schema.Schema{}}
	names := make([]string, 0, len(specs))
	for _, toolSpec := range specs {
		c.specs[toolSpec.Name] = toolSpec
		names = append(names, toolSpec.Name)
		if r := schemaOf(toolSpec.Schema); r != nil { // an unusable schema checks nothing; tool.NewSet rejects it
			c.schemas[toolSpec.Name] = r
		}
	}
	slices.Sort(names)
	c.names = strings.Join(names, ", ")
	return c
}

// validate checks one call before the loop acts on it. It returns a call that must
// not run as Ended, with an error result for the model.
func (s State) validate(t model.ToolCall, index int) Call {
	c := Call{ToolCall: t, Stage: Pending}
	if s.forbids(t.Name) { //mutant:forbidden-tool
		return c.fail(fmt.Sprintf("forbidden: this agent may not use %s; it did not run. The tools are: %s", history.Clip(t.Name, history.NameBytesShown), s.check.names))
	}
	toolSpec, known := s.check.specs[t.Name]
	if !known { //mutant:unknown-tool
		return c.fail(fmt.Sprintf("unknown tool %q; the tools are: %s", history.Clip(t.Name, history.NameBytesShown), s.check.names))
	}
	c.Class = toolSpec.Class
	if t.Cut { //mutant:cut-args-run
		return c.fail("the arguments were cut off before they were complete; the tool did not run. Call it again with shorter arguments")
	}
	if strings.TrimSpace(c.Args) == "" {
		c.Args = "{}"
	}
	if what, so := s.misfit(t.Name, c.Args); what != "" {
		return c.fail(what + "; " + so)
	}
	switch t.Name {
	case s.Habits.Halted: //mutant:halted-tool-runs
		return c.fail("not run: " + t.Name + " goes in circles. Use another tool")
	case askTool: // ask_human runs alone: no other call runs while a person is asked
		if c.Class = model.Effect; !s.Task.LoopOptions.Ask { //mutant:ask-needs-a-person
			return c.fail(nobodyToAsk)
		}
	case sendTool:
		if c.Sends = s.sends(t.Name); c.Sends {
			c.Class = model.Read
		}
	case delegateTool:
		c.Child = spec.ID(fmt.Sprintf("%s-%d-%d", s.Task.ID, s.Turn+1, index))
		c.Class = model.Read // children of one reply run in parallel
	}
	return c
}

// misfit validates arguments, whether a model or a hook supplied them. what is the
// error, and so is its consequence for the call; what is "" if the arguments are valid.
func (s State) misfit(tool, args string) (what, so string) {
	so = "the tool did not run"
	var decoded any
	if err := json.Unmarshal([]byte(args), &decoded); err != nil {
		return fmt.Sprintf("the arguments are not valid JSON (%v)", err), so
	}
	if fits := s.check.schemas[tool]; fits != nil {
		if err := fits.Validate(decoded); err != nil { //mutant:bad-args-run
			return fmt.Sprintf("the arguments do not fit the schema of %s: %s", tool, history.Clip(err.Error(), errorShown)), so
		}
	}
	switch tool {
	case askTool:
		return misasked(args), "nobody was asked"
	case delegateTool:
		return s.misdelegated(args), "it was not delegated"
	}
	if s.sends(tool) {
		return missent(args), "it was not sent"
	}
	return "", ""
}

// misdelegated returns the error in the arguments of delegate, or "" if they are valid.
func (s State) misdelegated(args string) string {
	var asked delegateArgs
	decode(args, &asked) // arguments that do not decode have no task
	switch {
	case len(args) > GoalBytesMax:
		return fmt.Sprintf("the task is %d bytes, at most %d are allowed", len(args), GoalBytesMax)
	case strings.TrimSpace(asked.Task) == "":
		return "the task is empty"
	case s.Task.LoopOptions.Kin:
		return asked.misshaped()
	}
	return ""
}

// Bounds of the texts that one agent sends to another, so that each fits an entry.
const (
	GoalBytesMax   = 32 << 10
	AnswerBytesMax = 96 << 10
	DetailBytesMax = 4 << 10 // of the reason why an agent ended
)

const (
	errorShown = 400
)

func (c Call) fail(text string) Call { return c.end(model.ToolResult{Text: text, Error: true}) }

func (c Call) end(r model.ToolResult) Call {
	r.Call = c.ID
	c.Stage, c.Result = Ended, r
	return c
}

// limit lets the first calls of a reply run, as far as the limits allow, and
// answers the rest.
func (s State) limit(calls []Call) []Call {
	left := min(int64(s.Task.Limits.ReplyCalls), s.Grant.Calls) //mutant:calls-granted
	for i, c := range calls {
		if c.Stage == Ended {
			continue
		}
		if left <= 0 {
			calls[i] = c.fail(notRunLimit)
			continue
		}
		left--
	}
	return calls
}

// noteDropped tells the model how many of its calls the entry of its reply does not hold.
func (s State) noteDropped(n int) State {
	if n <= 0 {
		return s
	}
	s.Remarks = append(slices.Clip(s.Remarks), fmt.Sprintf("At least %d more tool calls of your last reply were not run and are not shown above: "+
		"they did not fit the record. At most %d calls of one reply run; make fewer, with shorter arguments.", n, s.Task.Limits.ReplyCalls))
	return s
}

const notRunLimit = "not run: the limit of tool calls is reached"

// runnable counts the calls that will run.
func runnable(calls []Call) int {
	n := 0
	for _, c := range calls {
		if c.Stage != Ended {
			n++
		}
	}
	return n
}
