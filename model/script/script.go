// Package script is a scripted chat model: it answers from a file, for tests,
// examples and evals, without a network or a key.
//
// A script names, for every agent, the replies it gives in order:
//
//	agents:
//	  coordinator:
//	    - text: I ask the historian.
//	      calls: [{name: delegate, args: {agent: historian, task: "who wrote main.go?"}}]
//	    - text: "Done: {{last}}"
//	  historian:
//	    - calls: [{name: git_log, args: {path: main.go}}]
//	    - text: "Mostly one person. {{last}}"
//	default:
//	  - text: nothing to say
//
// The client keeps no position in the script. The request itself determines which
// reply comes next: the number of assistant messages in it (tombstones
// do not count). So a process that is restarted in the middle of a run continues
// where the run stopped, and the same request always gets the same reply.
// The exceptions are Failure.Times and Script.InOrder, which document it.
//
// The agent is the name given to Client, or else that of Request.Caller, or else the
// first line of the system prompt if that reads "agent: NAME". Without any, or for a
// name that is not in the script, the default list answers. Script.IDs names single agents.
//
// In texts and in the string values of arguments, {{last}} is replaced by the text
// of the last tool result, {{result.N}} by the Nth result (from 0) of the last
// tool message, {{task}} by the first and {{user}} by the last user message,
// {{agent}} by the agent's name, {{n}} by the index of the reply (from 0) and
// {{choice}} by the tool that the request forces, which a script may ignore, and
// {{system}} by the system prompt.
package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/model"
)

// MaxBytes bounds a script file.
const MaxBytes = 4 << 20

// Texts that a script sends after its last reply.
const (
	EndText     = "script ended"
	ClosingText = "script: stopped before its end"
)

// ErrScript is wrapped by every error of Parse and Load.
var ErrScript = errors.New("script: not a script")

// Script holds the replies of all agents of a run. It is read only once made.
type Script struct {
	// Agents maps an agent's name to its replies.
	Agents map[string][]Reply `yaml:"agents,omitempty"`
	// IDs maps an agent's id within its run ("root-1-0") to its replies. An id takes precedence over a
	// name: two agents of one definition have one name.
	IDs map[string][]Reply `yaml:"ids,omitempty"`
	// Default answers for agents that are not named.
	Default []Reply `yaml:"default,omitempty"`
	// Repeat sends the last reply again and again past the end; otherwise the
	// text is EndText, without calls.
	Repeat bool `yaml:"repeat,omitempty"`
	// InOrder gives each request of an agent its next reply, whatever the
	// transcript contains: for replies that are removed from it, and for
	// transcripts that are compacted. The count is kept in the client.
	InOrder bool `yaml:"in_order,omitempty"`
	// Closing is the text of a turn that forbids tools when the reply in turn
	// has no text of its own; empty means ClosingText.
	Closing string `yaml:"closing,omitempty"`
	// Window is the context window in tokens, of prompt and output; 0: unknown.
	Window int64 `yaml:"window,omitempty"`
	// Verbatim sends texts and arguments as they are written: nothing in them is replaced.
	Verbatim bool `yaml:"verbatim,omitempty"`
	// Name is the name of the script in errors, such as its path.
	Name string `yaml:"-"`
}

// Reply is one scripted reply. The zero Reply is an empty answer.
type Reply struct {
	Text string `yaml:"text,omitempty"`
	// Reasoning is emitted as reasoning deltas before the text; it is not part
	// of the message.
	Reasoning string `yaml:"reasoning,omitempty"`
	Calls     []Call `yaml:"calls,omitempty"`
	// Stop is the provider's label. Empty means tools if there are calls, else end.
	Stop model.Stop `yaml:"stop,omitempty"`
	// Usage is the reported usage. Nil means bytes/4 of prompt and output; an
	// output that would exceed Request.MaxOutput is cut there, as a provider does.
	Usage *Usage `yaml:"usage,omitempty"`
	// NoUsage leaves usage unreported.
	NoUsage bool `yaml:"no_usage,omitempty"`
	// Delay passes before anything arrives, Pace before every word and call.
	Delay Duration `yaml:"delay,omitempty"`
	Pace  Duration `yaml:"pace,omitempty"`
	// Cut ends the stream inside the last call, or halfway through the text
	// without calls. The attempt fails (class network, usage unknown) unless
	// Stop is max_output: then the provider itself cut it there, without an error.
	Cut bool `yaml:"cut,omitempty"`
	// Error fails the attempt. Nothing has arrived then, unless Cut is set too.
	Error *Failure `yaml:"error,omitempty"`
}

// Call is one scripted tool call.
type Call struct {
	Name string `yaml:"name,omitempty"`
	// Args is a mapping, sent as JSON with sorted keys; or a string, sent as it
	// is, so that a script can hold arguments that do not decode. Nothing means {}.
	Args any `yaml:"args,omitempty"`
	// Cut marks arguments in which the stream ended.
	Cut bool `yaml:"cut,omitempty"`
}

// Usage is a reported usage, with the field names of the result document.
type Usage struct {
	Input         int64 `yaml:"input_tokens,omitempty"`
	Output        int64 `yaml:"output_tokens,omitempty"`
	CacheRead     int64 `yaml:"cache_read_input_tokens,omitempty"`
	CacheCreation int64 `yaml:"cache_creation_input_tokens,omitempty"`
}

func (u Usage) toModel() model.Usage {
	return model.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheCreation: u.CacheCreation}
}

// Failure is a scripted *model.Error.
type Failure struct {
	Class      model.ErrorClass `yaml:"class,omitempty"`
	Status     int              `yaml:"status,omitempty"`
	RetryAfter Duration         `yaml:"retry_after,omitempty"`
	Unbilled   bool             `yaml:"unbilled,omitempty"`
	Message    string           `yaml:"message,omitempty"`
	// Times is how often the same request fails before the reply is sent; 0
	// means always. The count is kept in the client: a new process starts from zero.
	Times int `yaml:"times,omitempty"`
}

// Duration is a time.Duration written as "50ms".
type Duration time.Duration

// UnmarshalYAML reads "50ms"; a number without a unit is refused, except 0.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < 0 {
		return &safefile.FormError{Line: n.Line, Why: "a duration such as 50ms is expected",
			Full: fmt.Errorf("line %d: %q is not a duration such as 50ms", n.Line, n.Value)}
	}
	*d = Duration(v)
	return nil
}

// MarshalYAML writes "50ms".
func (d Duration) MarshalYAML() (any, error) { return time.Duration(d).String(), nil }

// Parse reads a script from YAML or JSON. Unknown keys are errors.
func Parse(data []byte) (*Script, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%w: %w", ErrScript, malformed(fmt.Sprintf("%d bytes, at most %d are read", len(data), MaxBytes)))
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	s := &Script{}
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScript, explainDecoding(err, data))
	}
	if err := dec.Decode(&Script{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrScript, malformed("more than one document"))
	}
	if len(s.Agents) == 0 && len(s.IDs) == 0 && len(s.Default) == 0 {
		return nil, fmt.Errorf("%w: %w", ErrScript, malformed("neither agents, ids nor default"))
	}
	for _, agents := range []map[string][]Reply{s.Agents, s.IDs} {
		for name, replies := range agents {
			if err := checkReplies(name, replies); err != nil {
				return nil, err
			}
		}
	}
	return s, checkReplies("default", s.Default)
}

// Load reads a script from a file.
func Load(path string) (*Script, error) {
	data, err := safefile.Read(path, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	s, err := Parse(data)
	if err == nil {
		s.Name = path
	}
	return s, err
}

// classes are the errors a script may name.
var classes = map[model.ErrorClass]bool{
	model.RateLimit: true, model.Overload: true, model.Network: true, model.TooLong: true, model.Auth: true, model.Quota: true,
	model.BadRequest: true, model.Refused: true, model.Aborted: true, model.UnknownClass: true,
	model.Undecodable: true, model.Misconfigured: true,
}

// stops are the labels a script may give; "" chooses by the calls.
var stops = map[model.Stop]bool{
	"": true, model.StopEnd: true, model.StopTools: true, model.StopMaxOutput: true,
	model.StopRefusal: true, model.StopUnknown: true,
}

// checkReplies finds at load time what would otherwise only be found in the middle of a run.
func checkReplies(agent string, replies []Reply) error {
	for i, r := range replies {
		bad := func(format string, args ...any) error {
			why := fmt.Sprintf("%s, reply %d: %s", agent, i, fmt.Sprintf(format, args...))
			return fmt.Errorf("%w: %w", ErrScript, malformed(why))
		}
		if r.Error != nil && !classes[r.Error.Class] {
			return bad("unknown error class %q", r.Error.Class)
		}
		if !stops[r.Stop] {
			return bad("unknown stop %q", r.Stop)
		}
		if u := r.Usage; u != nil && !u.toModel().InRange() {
			return bad("usage: each number is from 0 to 4294967296")
		}
		for _, c := range r.Calls {
			switch c.Args.(type) {
			case nil, string, map[string]any:
			default:
				return bad("args of %q must be a mapping or a string", c.Name)
			}
			if _, err := json.Marshal(c.Args); err != nil {
				return bad("args of %q: %v", c.Name, err)
			}
		}
	}
	return nil
}
