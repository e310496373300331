package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// toolRules says what a task allows its agent to call, with which arguments. It derives from
// the task, never changes, and is shared by all States of one agent.
type toolRules struct {
	specs     []model.ToolSpec // those of the task, which are never changed
	schemas   []*schema.Schema // of the arguments, by the index in specs; nil: none, or it cannot be used
	answer    *schema.Schema   // of the final answer; nil: there is none, or it cannot be used
	forbidden []string
	journal   bool     // the loop answers the journal's tools
	declares  bool     // the loop answers declare_failure
	private   bool     // one of the tools reads private data
	skills    bool     // no command of the task has the name of the tool that reads skills
	members   []string // delegates that represent agents of other programs
}

// delegateTool is the one tool that the loop itself turns into a child agent.
const delegateTool = toolname.Delegate

// a2aPrefix begins the name of an agent of another program that is called by the protocol A2A.
const a2aPrefix = toolname.A2APrefix

// delegateArgs are the arguments of delegate that the loop reads.
type delegateArgs struct {
	Agent, Task string
	Fork        bool // the child begins with its parent's history
	Background  bool
	Schema      json.RawMessage // of the answer
}

// compileTools compiles the rules of a task; specs are the tools that its agent may read of.
func compileTools(t spec.Task, specs []model.ToolSpec) *toolRules {
	c := toolPermissions(t)
	c.specs, c.schemas = specs, make([]*schema.Schema, len(specs))
	c.answer = schemaOf(t.LoopOptions.Require.Schema)
	for i, toolSpec := range specs {
		c.private = c.private || permission.DataOf(toolSpec, isCommand(&t, toolSpec.Name), false).Private
		c.schemas[i] = schemaOf(toolSpec.Schema) // an unusable schema checks nothing; tool.NewSet rejects it
	}
	return c
}

// find returns the index of a tool that the agent may read of, or -1.
func (c *toolRules) find(tool string) int {
	return slices.IndexFunc(c.specs, func(known model.ToolSpec) bool { return known.Name == tool })
}

// spec returns a tool that the agent may read of; ok is false for any other.
func (c *toolRules) spec(tool string) (found model.ToolSpec, ok bool) {
	if i := c.find(tool); i >= 0 {
		return c.specs[i], true
	}
	return found, false
}

// specOf returns a tool that the agent may read of, or the zero tool.
func (c *toolRules) specOf(tool string) model.ToolSpec {
	found, _ := c.spec(tool)
	return found
}

// names lists the tools in the order of their names.
func (c *toolRules) names() string {
	list := make([]string, 0, len(c.specs))
	for _, known := range c.specs {
		list = append(list, known.Name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// toolPermissions returns the rules of a task that need no schema.
func toolPermissions(t spec.Task) *toolRules {
	return &toolRules{forbidden: t.Forbidden, members: t.ForeignMembers, journal: t.LoopOptions.Journal, declares: t.LoopOptions.DeclareFailure,
		skills: !slices.ContainsFunc(t.Commands, func(known spec.Command) bool { return known.Name == skillTool })}
}

// knows reports whether the agent may read of a tool.
func (c *toolRules) knows(tool string) bool { return c.find(tool) >= 0 }

// namesUnknown names the tools of calls that the agent does not have, each once.
func (c *toolRules) namesUnknown(calls []Call) string {
	var names []string
	for _, call := range calls {
		if name := clip.Text(call.Name, message.NameBytesShown); !c.knows(call.Name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return clip.Marked(strings.Join(names, ", "), errorShownBytes, "…")
}

// forbids reports whether the run has the tool but this agent may not use it.
func (c *toolRules) forbids(tool string) bool { return slices.Contains(c.forbidden, tool) }

// firstForbidden returns the index of the first call of a forbidden tool, or -1.
func (c *toolRules) firstForbidden(calls []Call) int {
	return slices.IndexFunc(calls, func(call Call) bool { return c.forbids(call.Name) })
}

// isJournal reports whether the loop itself answers calls of that name.
func (c *toolRules) isJournal(name string) bool {
	return c.journal && slices.Contains([]string{journalGet, journalUpdate, journalAppend}, name)
}

// onlyConfirms reports whether the result of a call only confirms that something was passed on.
func (c *toolRules) onlyConfirms(call model.ToolCall) bool {
	var args delegateArgs
	decodeArgs(call.Args, &args)
	return call.Name == sendTool || isBacklogTool(call.Name) || call.Name == delegateTool && args.Background
}

// mcpPrefix begins the names of the tools of MCP servers.
const mcpPrefix = toolname.MCPPrefix

// validateCall checks one call before the loop acts on it. It returns a call that must
// not run as Ended, with an error result for the model.
func validateCall(s *State, t model.ToolCall, index int) Call {
	c := Call{ToolCall: t, callProgress: callProgress{Stage: Pending}}
	if s.tools.forbids(t.Name) { //mutant:forbidden-tool
		return c.deny(fmt.Sprintf("forbidden: this agent may not use %s; it did not run. The tools are: %s", clip.Text(t.Name, message.NameBytesShown), s.tools.names()))
	}
	toolSpec, known := s.tools.spec(t.Name)
	if !known { //mutant:unknown-tool
		end := Call.fail
		if strings.HasPrefix(t.Name, mcpPrefix) { // its server is missing or off; another name is the model's mistake
			end = Call.deny
		}
		return end(c, fmt.Sprintf("unknown tool %q; the tools are: %s", clip.Text(t.Name, message.NameBytesShown), s.tools.names()))
	}
	c.Class = toolSpec.Class
	if t.Cut { //mutant:cut-args-run
		return c.fail("the arguments were cut off before they were complete; the tool did not run. Call it again with shorter arguments")
	}
	if strings.TrimSpace(c.Args) == "" {
		c.Args = "{}"
	}
	if problem, consequence := s.tools.argumentError(t.Name, c.Args); problem != "" {
		return c.fail(problem + "; " + consequence)
	}
	switch t.Name {
	case s.LoopDetection.BlockedTool: //mutant:halted-tool-runs
		return c.fail("not run: " + t.Name + " was called repeatedly without progress. Use another tool")
	case askTool: // ask_human runs alone: no other call runs while a person is asked
		if c.Kind, c.Class = questionCall, model.Effect; !mayAskPeople(s) { //mutant:ask-needs-a-person
			return c.fail(nobodyToAsk)
		}
	case sendTool:
		c.Kind, c.Class = messageCall, model.Read
	case backlogList, backlogPost, backlogClaim, backlogDone, backlogReturn:
		c.Kind, c.Class = backlogCall, model.Read
	case declareTool:
		if s.tools.declares {
			c.Kind = declarationCall
		}
	case delegateTool, handoffTool:
		if t.Name == delegateTool && namesForeign(s.Task.Foreign, c.Args) {
			c.Kind, c.Class = foreignCall, model.Effect
			break
		}
		if c.Kind = delegationCall; t.Name == handoffTool {
			c.Kind = handoffCall
		}
		c.Child = spec.ID(fmt.Sprintf("%s-%d-%d", s.Task.ID, s.Turn+1, index))
		c.Class = model.Read // children of one reply run in parallel
	}
	return c
}

// argumentError validates arguments, whether a model or a hook supplied them. It returns
// the error, and what it means for the call; the error is "" if the arguments are valid.
func (c *toolRules) argumentError(tool, args string) (problem, consequence string) {
	consequence = "the tool did not run"
	var decoded any
	if err := json.Unmarshal([]byte(args), &decoded); err != nil {
		return fmt.Sprintf("the arguments are not valid JSON (%v)", err), consequence
	}
	if i := c.find(tool); i >= 0 && c.schemas[i] != nil {
		if err := c.schemas[i].Validate(decoded); err != nil { //mutant:bad-args-run
			return fmt.Sprintf("the arguments do not fit the schema of %s: %s", tool, clip.Text(err.Error(), errorShownBytes)), consequence
		}
	}
	switch tool {
	case askTool:
		return questionError(args), "nobody was asked"
	case delegateTool:
		return c.delegationError(args), "it was not delegated"
	case handoffTool:
		return handoffError(args), "it was not handed off"
	case sendTool:
		return messageError(args), "it was not sent"
	case declareTool:
		if c.declares {
			return declareError(args), "nothing was declared"
		}
	case backlogList, backlogPost, backlogClaim, backlogDone, backlogReturn:
		return newBacklog("", tool, args).Problem(), "the backlog is unchanged"
	}
	return "", ""
}

// delegationError returns the error in the arguments of delegate, or "" if they are valid.
func (c *toolRules) delegationError(args string) string {
	var asked delegateArgs
	decodeArgs(args, &asked) // arguments that do not decode have no task
	switch {
	case len(args) > goalBytesMax:
		return fmt.Sprintf("the task is %d bytes, at most %d are allowed", len(args), goalBytesMax)
	case strings.TrimSpace(asked.Task) == "":
		return "the task is empty"
	case slices.Contains(c.members, asked.Agent):
		if asked.Fork {
			return "an agent of another program cannot read what you have read: leave out fork, and say in the task what it must know"
		}
	case strings.HasPrefix(asked.Agent, a2aPrefix) && (asked.Background || asked.Fork):
		return "an agent of another program takes a task, and a schema of its answer: leave out background and fork"
	case strings.Contains(asked.Agent, "/") && !strings.HasPrefix(asked.Agent, a2aPrefix) && (asked.Background || asked.Fork || asked.schemaText() != ""):
		return "an agent of another program takes a task and nothing else: leave out background, fork and schema"
	}
	return asked.schemaProblem()
}

// namesForeign reports whether a delegation is to one of these agents of other programs. Any other name is the
// supervisor's to judge, which knows no agent with a slash in its name.
func namesForeign(foreign []string, args string) bool {
	var asked delegateArgs
	decodeArgs(args, &asked)
	return slices.Contains(foreign, asked.Agent)
}

// Bounds of the texts that one agent sends to another, so that each fits an entry.
const (
	goalBytesMax   = 32 << 10
	answerBytesMax = 96 << 10
	detailBytesMax = 4 << 10 // of the reason why an agent ended
)

// errorShownBytes bounds the text of an error in a text for the model or a person.
const errorShownBytes = 400

func (c Call) fail(text string) Call { return c.end(model.ToolResult{Text: text, Error: true}) }

// deny ends a call that the rights of the agent, a rule or a hook do not permit, one that needs an approval in an
// unattended run, or one of a tool of an MCP server that is not there. A person's "no" is not a denial: it directs the
// agent.
func (c Call) deny(text string) Call {
	c.Disposition = refusedByRule
	return c.fail(text)
}

// cutOff ends a call that something kept from beginning, or ended before its result was there.
func (c Call) cutOff(as event.Synthetic, text string) Call {
	c = c.fail(text)
	c.Synthetic = as
	return c
}

func (c Call) end(r model.ToolResult) Call {
	r.Call = c.ID
	c.Stage, c.Result, c.Synthetic = Ended, r, ""
	return c
}

// limitCalls lets the first calls of a reply run, as far as the limits allow, and
// answers the rest.
func limitCalls(s *State, calls []Call) []Call {
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

// remarkDropped tells the model how many of its calls the entry of its reply does not hold.
func remarkDropped(s *State, n int) *State {
	if n <= 0 {
		return s
	}
	s.Remarks = append(slices.Clip(s.Remarks), fmt.Sprintf("At least %d more tool calls of your last reply were not run and are not shown above: "+
		"they did not fit the record. At most %d calls of one reply run; make fewer, with shorter arguments.", n, s.Task.Limits.ReplyCalls))
	return s
}

const notRunLimit = "not run: the limit of tool calls is reached"
