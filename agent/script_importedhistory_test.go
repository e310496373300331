package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/model"
)

// parseRecalled reads messages, one per line: `user TEXT`, `assistant TEXT`, `tool`,
// each after an optional `struck`; below them `call ID NAME ARGS`, `result ID
// TEXT` and `sign ISSUER DATA` belong to the message above.
func parseRecalled(t *testing.T, d *datadriven.TestData) agent.Fact {
	t.Helper()
	return agent.Recalled{Past: argumentValue(t, d, "past"), Part: argumentNumber(t, d, "part", 0), Messages: parseMessages(t, d)}
}

func parseMessages(t *testing.T, d *datadriven.TestData) []model.Message {
	t.Helper()
	var list []model.Message
	for _, line := range strings.Split(d.Input, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		struck := word == "struck"
		if struck {
			word, rest, _ = strings.Cut(rest, " ")
		}
		switch word {
		case "user", "assistant", "tool", "narrator":
			list = append(list, model.Message{Role: model.Role(word), Text: rest, Tombstone: struck})
			if word == "assistant" {
				list[len(list)-1].Usage = &model.Usage{Input: 10, Output: 5}
			}
			continue
		}
		m := &list[len(list)-1]
		id, rest, _ := strings.Cut(rest, " ")
		switch word {
		case "call":
			name, args, _ := strings.Cut(rest, " ")
			m.Calls = append(m.Calls, model.ToolCall{ID: id, Name: name, Args: args})
		case "result":
			m.Results = append(m.Results, model.ToolResult{Call: id, Text: rest})
		case "sign":
			m.Opaque = append(m.Opaque, model.Opaque{Issuer: id, Kind: "signature", Data: []byte(rest)})
		default:
			t.Fatalf("%s: what is %q", d.Pos, line)
		}
	}
	return list
}

// printPast prints what an export of the agent has. Every one can be recalled.
func (p *scriptPlayer) printPast(t *testing.T) string {
	t.Helper()
	past := p.state.Past()
	err := past.Check()
	if known := (*history.Error)(nil); errors.As(err, &known) {
		t.Errorf("its own history is refused: %v", err)
	}
	head := fmt.Sprintf("%s of %s after turn %d, tokens=%d\n", past.Agent, past.Run, past.Turn, past.Usage.Total())
	for _, m := range past.Messages {
		for _, o := range m.Opaque {
			head += fmt.Sprintf("opaque of %s: %s\n", o.Issuer, o.Data)
		}
	}
	return head + printMessages(past.Messages)
}

// printHistory is what a delegation hands on.
func printHistory(e agent.Delegate) string {
	if len(e.Past) == 0 {
		return ""
	}
	text := ""
	for _, line := range strings.Split(strings.TrimSpace(printMessages(e.Past)), "\n") {
		text += "\n    with " + line
	}
	return text
}
