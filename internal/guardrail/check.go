package guardrail

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/model"
)

// Most bytes of a text where a size names none: half of what a large window holds, and more than a person reads.
const (
	promptBytes = 512 << 10
	replyBytes  = 64 << 10
	resultBytes = 64 << 10
)

// findingsShown is how many findings a reason names.
const findingsShown = 8

// shapes finds secrets by shape. A node masks the values that it knows before a guardrail reads a text.
var shapes = sync.OnceValue(func() *redact.Masker { return redact.New(redact.Config{}) })

// Check answers as the hook of a guardrail: pass, or the decision of its action with what was found. The reason never
// quotes the text.
func Check(h spec.Hook, d spec.HookData) (spec.HookAnswer, error) {
	var r rules
	if err := json.Unmarshal([]byte(h.Rules), &r); err != nil {
		return spec.HookAnswer{}, fmt.Errorf("its rules: %w", err)
	}
	name := strings.TrimPrefix(h.Name, HookName(""))
	var found []string
	var err error
	switch name {
	case Secrets:
		found = findSecrets(h.Point, d)
	case Injection:
		found = findInjections(untrustedTexts(h.Point, d))
	case Size:
		found = findSize(h.Point, d, r.Bytes)
	case Patterns:
		found, err = findPattern(r, textsOf(h.Point, d))
	default:
		err = fmt.Errorf("there is no guardrail %.40q", name)
	}
	if err != nil || len(found) == 0 {
		return spec.HookAnswer{}, err
	}
	return spec.HookAnswer{Decision: decisionOf(name, r.Action, h.Point), Text: reason(h.Point, found)}, nil
}

// reason says what was found where.
func reason(p spec.HookPoint, found []string) string {
	if n := len(found); n > findingsShown {
		found = append(found[:findingsShown:findingsShown], fmt.Sprintf("%d more", n-findingsShown))
	}
	where := map[spec.HookPoint]string{spec.HookInput: "the prompt", spec.HookOutput: "the reply", spec.HookToolResult: "the result"}[p]
	return where + " has " + strings.Join(found, ", ")
}

// textsOf are the texts of a point that no guardrail has judged before: of a prompt, the messages of users since the
// newest reply; results were judged when their calls returned.
func textsOf(p spec.HookPoint, d spec.HookData) []string {
	switch p {
	case spec.HookToolResult:
		return []string{d.Result}
	case spec.HookOutput:
		texts := []string{d.Text}
		for _, args := range argsOf(d) {
			texts = append(texts, args, unescapeArgs(args))
		}
		return texts
	}
	var texts []string
	for _, m := range newMessages(d.Messages) {
		if m.Role == model.User {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// argsOf are the arguments of the calls of a reply.
func argsOf(d spec.HookData) (list []string) {
	for _, m := range d.Messages {
		for _, c := range m.Calls {
			list = append(list, c.Args)
		}
	}
	return list
}

// unescapeArgs returns arguments with the letters that the tool reads: a model may write any letter as \uXXXX.
func unescapeArgs(args string) string {
	var value any
	if json.Unmarshal([]byte(args), &value) != nil {
		return "" // no tool reads them
	}
	var out strings.Builder
	write := json.NewEncoder(&out)
	write.SetEscapeHTML(false)
	_ = write.Encode(value) // it was decoded from JSON
	return out.String()
}

// newMessages are those after the newest reply.
func newMessages(list []model.Message) []model.Message {
	for i, m := range slices.Backward(list) {
		if m.Role == model.Assistant {
			return list[i+1:]
		}
	}
	return list
}

// agentSays is in the head of every message of another agent; the lines after it quote the message.
const agentSays = "An agent says this, not a person"

// untrustedTexts are texts that no person has written: results, and in prompts the quoted messages of other agents.
func untrustedTexts(p spec.HookPoint, d spec.HookData) []string {
	texts := textsOf(p, d)
	if p == spec.HookInput {
		for i, t := range texts {
			texts[i] = quotedLines(t)
		}
	}
	return texts
}

// quotedLines returns the messages of other agents in a text. A person's text may stand before and after them.
func quotedLines(text string) string {
	var out strings.Builder
	isQuote := false
	for line := range strings.Lines(text) {
		if quoted, ok := strings.CutPrefix(line, "> "); ok && isQuote {
			out.WriteString(quoted)
		} else {
			isQuote = strings.Contains(line, agentSays)
		}
	}
	return out.String()
}

// findSecrets finds secrets by shape, and in results the places where the node has masked one.
func findSecrets(p spec.HookPoint, d spec.HookData) []string {
	texts := textsOf(p, d)
	var found []string
	if slices.ContainsFunc(texts, func(t string) bool { return shapes().MaskText(t) != t }) {
		found = append(found, "what looks like a secret")
	}
	if p == spec.HookToolResult && strings.Contains(d.Result, redact.Replacement) {
		found = append(found, "a secret that the node has masked")
	}
	return found
}

// findSize finds a text that is too large.
func findSize(p spec.HookPoint, d spec.HookData, most int64) []string {
	size, usual := int64(0), int64(resultBytes)
	switch p {
	case spec.HookInput:
		usual = promptBytes
		for _, m := range d.Messages {
			size += int64(message.BytesOf(m))
		}
	case spec.HookOutput:
		usual = replyBytes
		for _, t := range append(argsOf(d), d.Text) {
			size += int64(len(t))
		}
	default:
		size = max(d.Size, int64(len(d.Result)))
	}
	if most == 0 {
		most = usual
	}
	if size <= most {
		return nil
	}
	return []string{fmt.Sprintf("%d bytes, at most %d are allowed", size, most)}
}

func findPattern(r rules, texts []string) ([]string, error) {
	re, err := regexp.Compile(r.Pattern)
	if err != nil {
		return nil, fmt.Errorf("its pattern: %w", err)
	}
	label := r.Label
	if label == "" {
		label = r.Pattern
	}
	if slices.ContainsFunc(texts, re.MatchString) {
		return []string{fmt.Sprintf("the pattern %q", label)}, nil
	}
	return nil, nil
}
