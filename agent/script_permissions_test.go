package agent_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// parsePermissions reads the permissions of the next task, line by line: `mode MODE`, `yes`, `confined`, `approvals N`, those of parseTaintLine, and a rule
// behind `allow`, `ask`, `deny`, `only`. `agent` and `parent` begin the permissions of the agent and of an ancestor.
func parsePermissions(t *testing.T, d *datadriven.TestData) []spec.Permissions {
	t.Helper()
	list := []spec.Permissions{{}}
	for i, line := range strings.Split(d.Input, "\n") {
		word, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		p := &list[len(list)-1]
		if parseTaintLine(p, strings.TrimSpace(line)) {
			continue
		}
		rule := spec.PermissionRule{Text: text, From: d.Cmd}
		switch word {
		case "none": // the task has permissions, and there are none
			return []spec.Permissions{}
		case "mode":
			p.Mode = spec.PermissionMode(text)
		case "approvals":
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			p.Approvals = n
		case "yes":
			p.Yes = true
		case "confined":
			p.Confined = true
		case "allow":
			p.Allow = append(p.Allow, rule)
		case "ask":
			p.Ask = append(p.Ask, rule)
		case "deny":
			p.Deny = append(p.Deny, rule)
		case "only":
			p.Only = append(p.Only, rule)
		case "agent":
		case "parent":
			if i > 0 {
				list = append(list, spec.Permissions{})
			}
		default:
			t.Fatalf("%s: %q is not a line about permissions", d.Pos, line)
		}
	}
	return list
}

// printPark prints a question to a person.
func printPark(q agent.Park) string {
	approvals := ""
	if q.Approvals > 0 {
		approvals = fmt.Sprintf(" approvals=%d by=%q", q.Approvals, q.ApprovedBy)
	}
	return fmt.Sprintf("park %s reason=%s call=%s%s %q", q.Query, q.Reason, q.Call, approvals, q.Question)
}

// answeredFact is a person's answer: `digest=open` is the digest of the open question.
func answeredFact(t *testing.T, d *datadriven.TestData, s agent.State) agent.Answered {
	t.Helper()
	f := agent.Answered{Query: firstArgument(d), Decision: spec.Decision(argumentValue(t, d, "decision")), Text: d.Input, Digest: argumentValue(t, d, "digest"), Always: argumentValue(t, d, "always"), By: argumentValue(t, d, "by")}
	if f.Digest == "open" {
		f.Digest = s.Suspended.Question.Digest
	}
	return f
}

// parseNarrowing reads a narrowing, in the lines of parsePermissions.
func parseNarrowing(t *testing.T, d *datadriven.TestData) spec.Narrowing {
	t.Helper()
	p := parsePermissions(t, d)[0]
	return spec.Narrowing{Mode: p.Mode, Ask: p.Ask, Deny: p.Deny}
}
