package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/message"
	"github.com/troupe-run/troupe/model"
)

// ArgsBytesMax bounds the arguments that a hook gives a call.
const ArgsBytesMax = 64 << 10

// Failures of answers.
var (
	errArgs   = errors.New("the arguments it gave are no JSON object")
	errSecret = errors.New("the arguments it gave hold what looks like a secret, and arguments are kept in the log; let the tool read it from its environment")
)

// sanitizeAnswer makes an answer fit for a log: bounded, valid text, with secrets redacted.
func (r *Runner) sanitizeAnswer(c Call, a spec.HookAnswer) (spec.HookAnswer, error) {
	a.Severity = spec.Severity(clipText(r.mask.MaskText(strings.ToValidUTF8(string(a.Severity), "\uFFFD")), wordShown))
	a.Text = clipText(r.mask.MaskText(strings.ToValidUTF8(a.Text, "\uFFFD")), spec.HookTextMax)
	a.Shows = clip.Middle(r.mask.MaskText(strings.ToValidUTF8(a.Shows, "\uFFFD")), spec.HookShowsMax)
	if a.Failed != "" {
		return a, errors.New(a.Failed)
	}
	if a.Args != "" {
		var object map[string]json.RawMessage
		switch {
		case len(a.Args) > ArgsBytesMax:
			return a, fmt.Errorf("the arguments it gave have %d bytes, at most %d are allowed", len(a.Args), ArgsBytesMax)
		case json.Unmarshal([]byte(a.Args), &object) != nil || object == nil:
			return a, errArgs
		case r.mask.MaskText(a.Args) != a.Args && r.mask.MaskText(c.Data.Args) == c.Data.Args:
			return a, errSecret
		}
	}
	if a.System != nil {
		if c.Hook.Point != spec.HookContext {
			return a, fmt.Errorf("it gave a system prompt, which means nothing at %s", c.Hook.Point)
		}
		if text := *a.System; text != c.Data.System {
			masked := r.mask.MaskText(strings.ToValidUTF8(text, "\uFFFD"))
			a.System = &masked
		}
	}
	if a.Messages == nil {
		return a, nil
	}
	if c.Hook.Point != spec.HookContext {
		return a, fmt.Errorf("it gave messages, which mean nothing at %s", c.Hook.Point)
	}
	if err := message.Sendable(a.Messages); err != nil {
		return a, err
	}
	a.Messages = r.redactMessages(a.Messages, c.Data.Messages)
	return a, nil
}

// redactMessages masks the texts that a hook has added; texts from its input stay unchanged.
func (r *Runner) redactMessages(list, told []model.Message) []model.Message {
	known := map[string]bool{}
	for _, m := range told {
		known[m.Text] = true
		for _, t := range m.Results {
			known[t.Text] = true
		}
	}
	text := func(s string) string {
		if known[s] {
			return s
		}
		return r.mask.MaskText(strings.ToValidUTF8(s, "\uFFFD"))
	}
	out := make([]model.Message, len(list))
	for i, m := range list {
		m.Text = text(m.Text)
		results := make([]model.ToolResult, len(m.Results))
		for j, t := range m.Results {
			t.Text = text(t.Text)
			results[j] = t
		}
		if m.Results != nil {
			m.Results = results
		}
		out[i] = m
	}
	return out
}

// fitAnswers bounds the total size of all answers at a hook point: an answer that does not fit
// after those before it is dropped.
func fitAnswers(answers []spec.HookAnswer) []spec.HookAnswer {
	room := AnswersBytesMax
	for i, a := range answers {
		size := len(a.Text) + len(a.Shows) + len(a.Args) + len(a.Failed)
		if a.System != nil {
			size += len(*a.System)
		}
		if a.Messages != nil {
			data, err := json.Marshal(a.Messages)
			if err != nil {
				size = AnswersBytesMax + 1 // a value that cannot be encoded does not fit
			}
			size += len(data)
		}
		if room -= size; room < 0 {
			room += size
			answers[i] = spec.HookAnswer{Hook: a.Hook, TookMS: a.TookMS, Failed: "its answer does not fit an entry of the log"}
		}
	}
	return answers
}

func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len(cutMark)], "") + cutMark
}

const cutMark = " …"
