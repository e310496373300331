package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// HookPoint is a place of the loop where hooks are called.
type HookPoint string

// Hook points. The loop waits at a gate until all of its hooks have answered;
// at the others it goes on, and an answer can only add a message to the next turn.
const (
	HookContext     HookPoint = "context"       // gate before a model call: may reshape the messages of this turn
	HookInput       HookPoint = "input"         // gate before a model call: guardrail on the messages
	HookOutput      HookPoint = "output"        // gate after a reply, before its tools: guardrail
	HookSampled     HookPoint = "post_sampling" // notified of a reply, before its tools
	HookPreTool     HookPoint = "pre_tool"      // gate before a call
	HookToolError   HookPoint = "tool_error"    // gate after a call that failed
	HookToolResult  HookPoint = "tool_result"   // gate after a call that ran, before the model reads its result: guardrail
	HookPostTool    HookPoint = "post_tool"     // notified of a result
	HookStop        HookPoint = "stop"          // gate before a stop is proposed
	HookStopFailure HookPoint = "stop_failure"  // notified that the model's provider failed
)

// gates are the points at which the loop waits.
var gates = []HookPoint{HookContext, HookInput, HookOutput, HookPreTool, HookToolError, HookToolResult, HookStop}

// Gate reports whether the loop waits at a point.
func (p HookPoint) Gate() bool { return slices.Contains(gates, p) }

// Hook is code of the user that the shell runs: a command line, or a Go function
// registered under the hook's name.
type Hook struct {
	Name  string    `msgpack:"n" json:"name"`
	Point HookPoint `msgpack:"p" json:"point"`
	// Tools is a regular expression on tool names, for pre_tool, tool_error, tool_result
	// and post_tool; "" matches all.
	Tools string `msgpack:"t,omitempty" json:"tools,omitempty"`
	// Command is a command line; "" is the Go function of that name.
	Command   string `msgpack:"c,omitempty" json:"command,omitempty"`
	TimeoutMS int64  `msgpack:"o,omitempty" json:"timeout_ms,omitempty"` // 0: HookTimeoutMS
	// Failing is the decision that counts if the hook crashes, hangs or answers
	// nonsense; "" continues as if the hook did not exist.
	Failing HookDecision `msgpack:"f,omitempty" json:"failing,omitempty"`
	// Report: observers see the hook's decision, which has no effect.
	Report bool `msgpack:"r,omitempty" json:"report,omitempty"`
	// Of is whose hook it is: OfRoot, OfChild, or "" for every agent's.
	Of string `msgpack:"w,omitempty" json:"of,omitempty"`
	// Rules configure a Go function, in a form of its own.
	Rules string `msgpack:"u,omitempty" json:"rules,omitempty"`
	// Severity is the severity of the hook's decisions that name none; "": high for trip, medium for deny.
	Severity Severity `msgpack:"v,omitempty" json:"severity,omitempty"`
}

// Whose hook a hook is.
const (
	OfRoot  = "root"
	OfChild = "child"
)

// HookTimeoutMS is how long a hook may take if it names no timeout.
const HookTimeoutMS = 60_000

// HooksMax is how many hooks one agent may have.
const HooksMax = 64

// HookDecision is what a hook answered.
type HookDecision string

// Decisions of hooks. For those that a point accepts, see strictness.
const (
	HookPass     HookDecision = ""         // nothing against it
	HookAllow    HookDecision = "allow"    // pre_tool: without asking further
	HookDeny     HookDecision = "deny"     // pre_tool, tool_result: the call gets Text as an error result; input, output: not passed, escalates
	HookAsk      HookDecision = "ask"      // pre_tool: a person decides
	HookSkip     HookDecision = "skip"     // pre_tool: not run, Text is a normal result
	HookOverride HookDecision = "override" // pre_tool, tool_error, tool_result: Text is the result; with Args the call runs with these
	HookBlock    HookDecision = "block"    // stop: go round again with Text
	HookPrevent  HookDecision = "prevent"  // stop: end here; tool_error: end as tool_failure; pre_tool: end as policy_blocked
	HookTrip     HookDecision = "trip"     // input, output, tool_result: end as guardrail
)

// strictness lists the decisions that a point accepts in addition to passing, the
// strictest first. Of several answers the strictest counts.
var strictness = map[HookPoint][]HookDecision{
	HookContext:    {HookTrip},
	HookInput:      {HookTrip, HookDeny},
	HookOutput:     {HookTrip, HookDeny},
	HookPreTool:    {HookPrevent, HookDeny, HookAsk, HookSkip, HookOverride, HookAllow},
	HookToolError:  {HookPrevent, HookOverride},
	HookToolResult: {HookTrip, HookDeny, HookOverride},
	HookStop:       {HookPrevent, HookBlock},
}

// Decisions are what hooks can decide at a point, the strictest first.
func (p HookPoint) Decisions() []HookDecision { return strictness[p] }

// Knows reports whether a decision means something at a point.
func (p HookPoint) Knows(d HookDecision) bool {
	return d == HookPass || d == HookAllow || slices.Contains(strictness[p], d)
}

// HookAnswer is one hook's answer.
type HookAnswer struct {
	Hook     string       `msgpack:"h"`
	Decision HookDecision `msgpack:"d,omitempty"`
	Text     string       `msgpack:"t,omitempty"` // for the model, at most HookTextMax bytes
	// Severity is how bad a guardrail's finding is; "": the severity of its Hook.
	Severity Severity `msgpack:"v,omitempty"`
	// Shows describes the call to the person who decides about it, as the node sees it: a change of a file as
	// the difference. It replaces the arguments in the question. Only PermissionHook gives it.
	Shows    string          `msgpack:"w,omitempty"`
	Args     string          `msgpack:"a,omitempty"` // JSON: pre_tool, the arguments to run with instead
	Messages []model.Message `msgpack:"m,omitempty"` // context: the messages of this turn
	System   *string         `msgpack:"y,omitempty"` // context: the system prompt of this turn, instead of all layers below priority 100
	// Sent is how many messages a context hook answered with, if the next one has
	// changed them again.
	Sent int `msgpack:"s,omitempty"`
	// Failed says why the hook gave no verdict; Decision is then its default.
	Failed string `msgpack:"f,omitempty"`
	TookMS int64  `msgpack:"o,omitempty"`
}

// HookTextMax bounds the text of one hook's answer.
const HookTextMax = 8 << 10

// CallQuestion is the first line of a question about a call. What the call would do follows.
const CallQuestion = "May this run?"

// HookShowsMax bounds what a person reads of a call: its beginning and its end.
const HookShowsMax = 3 << 10

// HookData is the input of hooks; the point decides which fields are set.
type HookData struct {
	Text     string          // of a reply, an answer, an error
	Messages []model.Message // context, input: what is about to be sent
	System   string          // context: the first part of the system prompt that is about to be sent
	Call     string
	Tool     string
	Args     string
	Result   string
	Size     int64 // tool_result: bytes of the whole result, if Result is only a part of it
	Error    bool
	Blocks   int // stop: how often in a row hooks have sent it back
}

var points = append(slices.Clone(gates), HookSampled, HookPostTool, HookStopFailure)

// Validate reports what would keep a hook from doing what its author wrote.
func (h Hook) Validate() error {
	switch {
	case h.Name == "":
		return fmt.Errorf("a hook has no name")
	case isReservedName(h.Name), strings.HasPrefix(h.Name, guardrailPrefix) && h.Rules == "":
		return fmt.Errorf("hook %s: troupe itself has this name, and events would not tell who decided; choose another", h.Name)
	case !slices.Contains(points, h.Point):
		return fmt.Errorf("hook %s: there is no point %q; the points are %v", h.Name, h.Point, points)
	case !h.Point.Knows(h.Failing):
		return fmt.Errorf("hook %s: failing %q means nothing at %s; it knows %v", h.Name, h.Failing, h.Point, strictness[h.Point])
	case h.TimeoutMS < 0:
		return fmt.Errorf("hook %s: its timeout is %d ms", h.Name, h.TimeoutMS)
	case !slices.Contains([]string{"", OfRoot, OfChild}, h.Of):
		return fmt.Errorf("hook %s: it is of %q; write root or child, or leave it out", h.Name, h.Of)
	case h.Severity.Rank() < 0:
		return fmt.Errorf("hook %s: there is no severity %.40q; write low, medium, high or critical", h.Name, string(h.Severity))
	}
	if _, err := ToolPattern(h.Tools); err != nil {
		return fmt.Errorf("hook %s: tools: %w", h.Name, err)
	}
	return nil
}

// isReservedName reports whether a name is one of troupe's own hooks, or could be taken for an author of decisions that
// is no hook: "a rule", "the permission mode", "--yes".
func isReservedName(name string) bool {
	return strings.EqualFold(name, PermissionHook) ||
		strings.HasPrefix(name, "a ") || strings.HasPrefix(name, "the ") || strings.HasPrefix(name, "-")
}

// ToolPattern compiles a pattern of tool names, a regular expression on the whole
// name. It returns nil for "" and "*", which match all tools.
func ToolPattern(tools string) (*regexp.Regexp, error) {
	if tools == "" || tools == "*" {
		return nil, nil
	}
	return regexp.Compile("^(?:" + tools + ")$")
}
