package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/process"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/model"
)

// Limits of a command.
const (
	// StdoutBytesMax and MessagesBytesMax bound the output of a command; the latter applies
	// when the command reshapes a prompt. A command that prints more gives no verdict.
	StdoutBytesMax   = 128 << 10
	MessagesBytesMax = 1 << 20
	stderrShown      = 2000
)

// exitRefuses is the exit code of a command that refuses, with stderr as its reason.
const exitRefuses = 2

// commandInput is the JSON that a command reads from stdin: the fields that hooks of other agent
// tools know, then troupe's own.
type commandInput struct {
	SessionID  string          `json:"session_id"` // the run
	Event      string          `json:"hook_event_name"`
	Cwd        string          `json:"cwd"`
	ToolName   string          `json:"tool_name,omitempty"`
	ToolInput  json.RawMessage `json:"tool_input,omitempty"`
	ToolUseID  string          `json:"tool_use_id,omitempty"`
	Response   *string         `json:"tool_response,omitempty"`
	StopActive *bool           `json:"stop_hook_active,omitempty"` // a stop was sent back before

	Run      string          `json:"run"`
	Agent    string          `json:"agent"`
	Parent   string          `json:"parent,omitempty"`
	Name     string          `json:"agent_name"`
	Hook     string          `json:"hook"`
	Point    spec.HookPoint  `json:"point"`
	ID       string          `json:"id"`
	Turn     int             `json:"turn"`
	Text     string          `json:"text,omitempty"`
	Messages []model.Message `json:"messages,omitempty"`
	System   string          `json:"system,omitempty"`
	Error    bool            `json:"error,omitempty"`
}

// hookEventNames are the names of hook points in hooks of other agent tools.
var hookEventNames = map[spec.HookPoint]string{
	spec.HookContext: "TransformContext", spec.HookInput: "InputGuardrail", spec.HookOutput: "OutputGuardrail",
	spec.HookSampled: "PostSampling", spec.HookPreTool: "PreToolUse", spec.HookPostTool: "PostToolUse",
	spec.HookToolError: "PostToolUseFailure", spec.HookToolResult: "ToolResultGuardrail", spec.HookStop: "Stop", spec.HookStopFailure: "StopFailure",
}

func hookEventName(c Call) string {
	if c.Hook.Point == spec.HookStop && c.Depth > 0 {
		return "SubagentStop"
	}
	return hookEventNames[c.Hook.Point]
}

func encodeInput(c Call) ([]byte, error) {
	in := commandInput{SessionID: c.Run, Event: hookEventName(c), Cwd: c.Workspace, ToolName: c.Data.Tool, ToolUseID: c.Data.Call, Run: c.Run, Agent: c.Agent,
		Parent: c.Parent, Name: c.Name, Hook: c.Hook.Name, Point: c.Hook.Point, ID: c.ID, Turn: c.Turn, Text: c.Data.Text,
		Messages: c.Data.Messages, System: c.Data.System, Error: c.Data.Error}
	if c.Data.Tool != "" {
		in.ToolInput = json.RawMessage(c.Data.Args)
		if !json.Valid(in.ToolInput) {
			in.ToolInput = json.RawMessage("null")
		}
		if isClaudeHook(c.Hook) {
			toClaude(&in)
		}
	}
	switch c.Hook.Point {
	case spec.HookPostTool, spec.HookToolError, spec.HookToolResult:
		in.Response = &c.Data.Result
	case spec.HookStop:
		active := c.Data.Blocks > 0
		in.StopActive = &active
	}
	return json.Marshal(in)
}

var inheritedEnv = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// runCommand is the Func of hooks that are commands, with further variables.
func runCommand(ctx context.Context, c Call, more []string) (spec.HookAnswer, error) {
	var none spec.HookAnswer
	data, err := encodeInput(c)
	if err != nil {
		return none, fmt.Errorf("its input cannot be written: %w", err)
	}
	var env []string
	for _, name := range inheritedEnv {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	env = append(append(env, more...), "CLAUDE_PROJECT_DIR="+c.Workspace, "TROUPE_RUN="+c.Run, "TROUPE_AGENT="+c.Agent, "TROUPE_HOOK="+c.Hook.Name,
		"TROUPE_POINT="+string(c.Hook.Point))
	most := StdoutBytesMax
	if c.Hook.Point == spec.HookContext {
		most = MessagesBytesMax
	}
	dir := ""
	if c.Workspace != "" {
		at, err := workdir.Open(c.Workspace) // follows no link that was put there
		if err != nil {
			return none, fmt.Errorf("it could not run: %w", err)
		}
		defer func() { _ = at.Close() }()
		dir = workdir.DescriptorPath(at)
	}
	out, err := process.Run(ctx, process.Spec{Argv: []string{"/bin/sh", "-c", c.Hook.Command}, Dir: dir, Env: env, Stdin: data,
		StdoutMax: most, HeadOnly: true})
	if err != nil {
		return none, fmt.Errorf("it could not run: %w", err)
	}
	stderr := lastBytes(strings.TrimSpace(string(out.Stderr)), stderrShown)
	switch {
	case out.Exit == exitRefuses:
		return refusalAnswer(c.Hook.Point, stderr)
	case out.Exit < 0:
		return none, fmt.Errorf("it was ended by a signal%s", appendStderr(stderr))
	case out.Exit != 0:
		return none, fmt.Errorf("exit code %d%s", out.Exit, appendStderr(stderr))
	case out.Cut:
		return none, fmt.Errorf("it printed %d bytes, at most %d are read", out.StdoutBytes, most)
	}
	stdout := bytes.TrimSpace(out.Stdout)
	if !bytes.HasPrefix(stdout, []byte("{")) {
		return none, nil // the output means nothing to troupe
	}
	var said commandOutput
	if err := json.Unmarshal(stdout, &said); err != nil {
		return none, fmt.Errorf("its output is not JSON: %w", err)
	}
	answer, err := said.toAnswer(c.Hook.Point)
	if answer.Args != "" && isClaudeHook(c.Hook) {
		answer.Args = fromClaude(c.Data.Tool, answer.Args, c.Workspace)
	}
	return answer, err
}

func appendStderr(stderr string) string {
	if stderr == "" {
		return ""
	}
	return "; stderr: " + stderr
}

func lastBytes(s string, n int) string {
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// blockDecision is the meaning of "block" at a point; "" where hooks are only notified.
func blockDecision(p spec.HookPoint) spec.HookDecision {
	switch p {
	case spec.HookPreTool, spec.HookInput, spec.HookOutput, spec.HookToolResult:
		return spec.HookDeny
	case spec.HookStop:
		return spec.HookBlock
	}
	return spec.HookPass
}

// haltDecision is the meaning of "do not continue" at a point.
func haltDecision(p spec.HookPoint) spec.HookDecision {
	switch p {
	case spec.HookPreTool, spec.HookToolError, spec.HookStop:
		return spec.HookPrevent
	case spec.HookContext, spec.HookInput, spec.HookOutput, spec.HookToolResult:
		return spec.HookTrip
	}
	return spec.HookPass
}

var errRefuses = errors.New("it refused, which means nothing at context; print {\"continue\": false} to end the run")

// refusalAnswer is the answer of a command that ended with exitRefuses.
func refusalAnswer(p spec.HookPoint, stderr string) (spec.HookAnswer, error) {
	if p == spec.HookContext {
		return spec.HookAnswer{}, errRefuses
	}
	return spec.HookAnswer{Decision: blockDecision(p), Text: stderr}, nil
}
