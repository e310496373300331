// Package spec defines the instructions of a run to an agent, as plain data: its
// task, its limits, its loop options and hooks, and the words for why a loop
// continued or ended. Package agent has the loop that follows them. Logs record
// all of these types: the keys of the msgpack tags never change.
package spec

import (
	"strings"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// ID names an agent within its run: "root", or "<parent>-<turn>-<index>".
type ID string

// Root is the root agent of a run: the one that gets the task.
const Root ID = "root"

// IsBelow reports whether an agent is below another one: its id begins with that of the other.
func (id ID) IsBelow(of ID) bool { return strings.HasPrefix(string(id), string(of)+"-") }

// Above are the ancestors of an agent, its parent first, as its id names them.
func (id ID) Above() (list []ID) {
	for {
		i := strings.LastIndexByte(string(id), '-') // "<parent>-<turn>-<index>"
		if i > 0 {
			i = strings.LastIndexByte(string(id[:i]), '-')
		}
		if i <= 0 {
			return list
		}
		id = id[:i]
		list = append(list, id)
	}
}

// Task is everything an agent's loop needs to know, recorded in its Submitted:
// Step reads the log and nothing else.
type Task struct {
	Run         string            `msgpack:"r"`
	ID          ID                `msgpack:"i"`
	Parent      ID                `msgpack:"p,omitempty"`
	Depth       int               `msgpack:"h,omitempty"`
	Name        string            `msgpack:"n"` // of the definition
	Goal        string            `msgpack:"g"`
	Media       []model.Media     `msgpack:"md,omitempty"` // that come with the goal
	System      string            `msgpack:"s"`
	Model       Model             `msgpack:"m"`
	Tools       []model.ToolSpec  `msgpack:"t,omitempty"` // offered to the model
	Limits      Limits            `msgpack:"l"`
	Caller      string            `msgpack:"c,omitempty"`
	Priority    string            `msgpack:"pr,omitempty"` // of the run, at throttled models; "": normal
	Constraints []string          `msgpack:"k,omitempty"`
	Criteria    []string          `msgpack:"q,omitempty"`
	FailIf      []string          `msgpack:"fi,omitempty"` // conditions under which the run has failed
	Trace       string            `msgpack:"w,omitempty"`  // W3C traceparent
	Workspace   string            `msgpack:"d,omitempty"`
	Memory      string            `msgpack:"me,omitempty"` // whose notes it keeps beyond the run: agentmemory.User or Project
	Source      string            `msgpack:"b,omitempty"`  // the file that defines its prompt; "": built in
	Hashes      map[string]string `msgpack:"x,omitempty"`  // versions at the start of the run, for F4 (agent/drift.go)
	Writable    []string          `msgpack:"u,omitempty"`  // paths that may be written without approval
	Commands    []Command         `msgpack:"z,omitempty"`  // tools of an agent file that the shell runs
	Servers     []Server          `msgpack:"ms,omitempty"` // MCP servers that provide the other tools
	LoopOptions LoopOptions       `msgpack:"a,omitempty"`
	// Permissions are the agent's own and those of its ancestors; the strictest counts. nil: no call is denied or
	// asked about.
	Permissions []Permissions `msgpack:"pe,omitempty"`
	// Private: a tool of the run reads private data.
	Private bool `msgpack:"pv,omitempty"`
	// Tainted is what the agent has read of text from outside when it begins: its parent has, or the task is such a text.
	Tainted *Taint `msgpack:"tt,omitempty"`
	// AddedRules are rules that people have added in the run so far.
	AddedRules []PermissionRule `msgpack:"pg,omitempty"`
	Forbidden  []string         `msgpack:"f,omitempty"` // tools of the run that this agent may not use
	// Foreign are the agents of other programs that this agent may call, as HARNESS/OWNER/NAME. A member that
	// represents an agent of another program has the name of that agent.
	Foreign []string `msgpack:"fo,omitempty"`
	// ForeignMembers are those of its delegates that represent an agent of another program.
	ForeignMembers []string `msgpack:"fm,omitempty"`
	// ChargeNano is what the supervisor books for the work of the agents in Foreign, in billionths of a US dollar; 0:
	// nothing, so that their cost is unknown.
	ChargeNano int64 `msgpack:"ch,omitempty"`
	// Past is the run before this one in its conversation, for the root.
	Past *HistoryOrigin `msgpack:"ho,omitempty"`
	// Layers are further parts of the system prompt, in addition to System and LoopOptions.Dynamic: those of
	// ancestors, and those that were set for this agent (SystemPrompt).
	Layers []Layer `msgpack:"la,omitempty"`
}

// Command is a tool that is a command line. Its spec is among Task.Tools.
type Command struct {
	Name      string `msgpack:"n" json:"name"`
	Line      string `msgpack:"l" json:"command"`
	TimeoutMS int64  `msgpack:"tm,omitempty" json:"timeout_ms,omitempty"` // of a call; 0: tool.TimeoutDefault
}

// Server is an MCP server whose tools are among Task.Tools. Its address is only in
// the file, with its secrets; the hash shows whether the server is still the same.
type Server struct {
	Name   string `msgpack:"n" json:"name"`
	Source string `msgpack:"s" json:"source"`
	Hash   string `msgpack:"h" json:"hash"`
	// Own: on the node where the run began, the operator defined the server. Another
	// node may have other roots, and must not trust the server for that reason.
	Own bool `msgpack:"o,omitempty" json:"own,omitempty"`
}

// Has reports whether the server provides a tool, by the tool's name.
func (s Server) Has(tool string) bool { return strings.HasPrefix(tool, toolname.MCPPrefix+s.Name+"__") }

// Model is a model route with the facts that the pool needs about it.
type Model struct {
	Name        string       `msgpack:"n" json:"name"` // "provider/model"
	Window      int64        `msgpack:"w,omitempty" json:"window,omitempty"`
	Price       budget.Price `msgpack:"p,omitempty" json:"price"`
	Temperature *float64     `msgpack:"t,omitempty" json:"temperature,omitempty"`
	Effort      string       `msgpack:"e,omitempty" json:"effort,omitempty"`
	// Output is the most output tokens of one call; 0: not known.
	Output int64 `msgpack:"o,omitempty" json:"output,omitempty"`
	// Frame is the most tokens that its provider adds to a prompt that lists tools.
	Frame int64 `msgpack:"f,omitempty" json:"frame,omitempty"`
}
