// Package guardrail has the ready guardrails: secrets, injection, size and patterns. Each becomes hooks of an agent,
// which the runner of hooks calls in this process. A guardrail reads the text of one hook point and answers from
// it alone, in linear time. docs/guardrails.md says what each finds, and what it cannot find.
package guardrail

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/suggest"
)

// Names of ready guardrails.
const (
	Secrets   = "secrets"
	Injection = "injection"
	Size      = "size"
	Patterns  = "patterns"
)

// Actions of guardrails.
const (
	warn  = "warn"  // the finding is published, and has no effect
	block = "block" // the text is withheld
	end   = "end"   // the run ends
)

// Limits of guardrails.
const (
	GuardrailsMax   = 16
	patternBytesMax = 1 << 10
	patternStepsMax = 512 // of a compiled pattern: the time for a text is their product, some seconds for 256 KiB at worst
	labelBytesMax   = 64
	sizeBytesMax    = 1 << 30
)

// ErrGuardrail is wrapped by every error about a guardrail's options.
var ErrGuardrail = errors.New("guardrail")

// kind says where a guardrail looks, and how bad its findings are by default.
type kind struct {
	at, may  []spec.HookPoint // by default, and at all
	severity spec.Severity
}

var kinds = map[string]kind{
	Secrets:   {at: everywhere, may: everywhere, severity: "high"},
	Injection: {at: untrusted, may: untrusted, severity: "high"},
	Size:      {at: []spec.HookPoint{spec.HookToolResult, spec.HookOutput}, may: everywhere, severity: "low"},
	Patterns:  {at: everywhere, may: everywhere, severity: "medium"},
}

var (
	everywhere = []spec.HookPoint{spec.HookInput, spec.HookOutput, spec.HookToolResult}
	untrusted  = []spec.HookPoint{spec.HookInput, spec.HookToolResult}
	names      = []string{Secrets, Injection, Size, Patterns}
	actions    = []string{warn, block, end}
)

// HookName is the name of the hooks of a guardrail, by which a node finds Check.
func HookName(name string) string { return "guardrail:" + name }

// Makes reports whether Hooks can make a hook. Such a hook only takes rights away, whichever file names it.
func Makes(h spec.Hook) bool {
	var r rules
	if json.Unmarshal([]byte(h.Rules), &r) != nil {
		return false
	}
	g := spec.ReadyGuardrail{Name: strings.TrimPrefix(h.Name, HookName("")), Action: r.Action, Severity: h.Severity, At: []spec.HookPoint{h.Point},
		Tools: r.Tools, Label: r.Label, Pattern: r.Pattern, Bytes: r.Bytes}
	hooks, err := Hooks([]spec.ReadyGuardrail{g})
	return err == nil && slices.Equal(hooks, []spec.Hook{h})
}

// HookNames are the names of the hooks of all guardrails.
func HookNames() []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = HookName(n)
	}
	return list
}

// rules is the form of spec.Hook.Rules.
type rules struct {
	Action  string `json:"action"`
	Tools   string `json:"tools,omitempty"` // as they were given
	Label   string `json:"label,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
}

// Parse reads the short form of a guardrail: NAME, NAME:ACTION or NAME:ACTION:SEVERITY.
func Parse(text string) spec.ReadyGuardrail {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), ":")
	action, severity, _ := strings.Cut(rest, ":")
	return spec.ReadyGuardrail{Name: name, Action: action, Severity: spec.Severity(severity)}
}

// Hooks are the hooks of guardrails. Equal guardrails count once.
func Hooks(list []spec.ReadyGuardrail) ([]spec.Hook, error) {
	if len(list) > GuardrailsMax {
		return nil, fmt.Errorf("%w: %d are given, at most %d are read; join patterns by |", ErrGuardrail, len(list), GuardrailsMax)
	}
	var hooks []spec.Hook
	for i, g := range list {
		if err := check(g); err != nil {
			return nil, fmt.Errorf("%w %d: %w", ErrGuardrail, i+1, err)
		}
		for _, h := range hooksOf(g) {
			if !slices.Contains(hooks, h) {
				hooks = append(hooks, h)
			}
		}
	}
	return hooks, nil
}

// check reports options that would not do what their author wrote.
func check(g spec.ReadyGuardrail) error {
	k, known := kinds[g.Name]
	if !known {
		return fmt.Errorf("there is no guardrail %.40q%s", g.Name, oneOf(g.Name, names))
	}
	if g.Action != "" && !slices.Contains(actions, g.Action) {
		return fmt.Errorf("%s has no action %.40q%s", g.Name, g.Action, oneOf(g.Action, actions))
	}
	if g.Severity.Rank() < 0 {
		return fmt.Errorf("%s: there is no severity %.40q; write low, medium, high or critical", g.Name, string(g.Severity))
	}
	for _, p := range g.At {
		if !slices.Contains(k.may, p) {
			return fmt.Errorf("%s cannot look at %.40q; it looks at %s", g.Name, string(p), joinPoints(k.may))
		}
	}
	if _, err := spec.ToolPattern(g.Tools); err != nil {
		return fmt.Errorf("%s: tools %.80q: %w; write names with | between them, such as http_get|mcp__.*", g.Name, g.Tools, err)
	}
	if g.Tools != "" && len(g.At) > 0 && !slices.Contains(g.At, spec.HookToolResult) {
		return fmt.Errorf("%s names tools, and does not look at %s; add that point, or take tools out", g.Name, spec.HookToolResult)
	}
	return checkOwn(g)
}

// checkOwn checks the options that belong to one guardrail.
func checkOwn(g spec.ReadyGuardrail) error {
	switch {
	case g.Name != Patterns && (g.Pattern != "" || g.Label != ""):
		return fmt.Errorf("%s has no pattern and no label; they belong to %s", g.Name, Patterns)
	case g.Name != Size && g.Bytes != 0:
		return fmt.Errorf("%s has no number of bytes; it belongs to %s", g.Name, Size)
	case g.Bytes < 0 || g.Bytes > sizeBytesMax:
		return fmt.Errorf("bytes is %d; write 1 to %d, or leave it out for the default", g.Bytes, sizeBytesMax)
	case g.Name == Patterns && g.Pattern == "":
		return fmt.Errorf(`%s has no pattern; write {guardrail: patterns, label: ticket, pattern: 'SEC-\d+'}`, Patterns)
	case len(g.Pattern) > patternBytesMax || len(g.Label) > labelBytesMax:
		return fmt.Errorf("a pattern has at most %d bytes, its label %d; this one has %d and %d", patternBytesMax, labelBytesMax, len(g.Pattern), len(g.Label))
	case strings.ContainsFunc(g.Label, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the label %.40q has a character that is not printed; write one line", g.Label)
	}
	return checkPattern(g)
}

// checkPattern refuses a pattern that finds every text, or takes too long.
func checkPattern(g spec.ReadyGuardrail) error {
	re, err := regexp.Compile(g.Pattern)
	if err != nil {
		return fmt.Errorf("pattern %.80q: %w; patterns are RE2, which has no look-around and no back references", g.Pattern, err)
	}
	if g.Name == Patterns && re.MatchString("") {
		return fmt.Errorf("pattern %.80q fits the empty text, so it would find every text; write what has to be there", g.Pattern)
	}
	if n := patternSteps(g.Pattern); n > patternStepsMax {
		return fmt.Errorf("pattern %.80q compiles to %d steps, at most %d are tried; write smaller numbers in braces", g.Pattern, n, patternStepsMax)
	}
	return nil
}

// patternSteps is the number of instructions of a compiled pattern.
func patternSteps(pattern string) int {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0 // checkPattern has compiled it
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// hooksOf makes the hooks of one guardrail, one at each point.
func hooksOf(g spec.ReadyGuardrail) []spec.Hook {
	if g.Action == "" {
		g.Action = block
	}
	if g.Severity == "" {
		g.Severity = kinds[g.Name].severity
	}
	at := g.At
	if len(at) == 0 {
		at = kinds[g.Name].at
	}
	var hooks []spec.Hook
	for _, p := range at {
		h := spec.Hook{Name: HookName(g.Name), Point: p, Severity: g.Severity, Report: g.Action == warn}
		r := rules{Action: g.Action, Label: g.Label, Pattern: g.Pattern, Bytes: g.Bytes}
		if p == spec.HookToolResult && g.Tools != "" {
			r.Tools, h.Tools = g.Tools, "(?:"+g.Tools+")|"+readResult
		}
		data, _ := json.Marshal(r) // of texts and a number: no error
		h.Rules = string(data)
		if !h.Report { // a guardrail that gives no verdict has not passed the text
			h.Failing = decisionOf(g.Name, g.Action, p)
		}
		hooks = append(hooks, h)
	}
	return hooks
}

// readResult is the tool that reads the rest of a clipped result: a guardrail of some tools judges what it reads, too,
// because it may be of one of these tools.
const readResult = "read_result"

// decisionOf is the decision of a guardrail about a text that it does not pass. A prompt cannot go without its task,
// so a prompt that must not be sent ends the run. The exception is a message of another agent that reads like an
// instruction: it stays, is marked as such a message, and the model reads a warning.
func decisionOf(name, action string, p spec.HookPoint) spec.HookDecision {
	if action == end || action == block && p == spec.HookInput && name != Injection {
		return spec.HookTrip
	}
	return spec.HookDeny
}

func joinPoints(points []spec.HookPoint) string {
	words := make([]string, len(points))
	for i, p := range points {
		words[i] = string(p)
	}
	return strings.Join(words, ", ")
}

// oneOf is the remedy for a wrong word.
func oneOf(word string, words []string) string {
	if near := suggest.Nearest(word, words); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; write " + strings.Join(words, ", ")
}
