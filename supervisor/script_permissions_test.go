package supervisor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/supervisor"
)

// parsePermit reads a line `permit NAME mode MODE`, `permit NAME taint MODE` or `permit NAME allow|ask|deny RULE` of a run: NAME is an agent that
// a line above defines, or `run`.
func parsePermit(t *testing.T, o *supervisor.Opened, line string) {
	t.Helper()
	name, rest, _ := strings.Cut(line, " ")
	word, text, _ := strings.Cut(rest, " ")
	if o.Permissions == nil {
		o.Permissions = &spec.Permissions{}
	}
	p := o.Permissions
	if i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == name }); i >= 0 {
		if o.Definitions[i].Permissions == nil {
			o.Definitions[i].Permissions = &spec.Permissions{}
		}
		p = o.Definitions[i].Permissions
	} else if name != "run" {
		t.Fatalf("no agent %q", name)
	}
	rule := spec.PermissionRule{Text: text, From: name}
	switch word {
	case "mode":
		p.Mode = spec.PermissionMode(text)
	case "allow":
		p.Allow = append(p.Allow, rule)
	case "ask":
		p.Ask = append(p.Ask, rule)
	case "deny":
		p.Deny = append(p.Deny, rule)
	case "taint":
		p.Taint = text
	case "nothing":
	default:
		t.Fatalf("%q", line)
	}
}

// printPermissions shows the permissions of a task: those of the agent, and of its ancestors.
func printPermissions(t spec.Task) string {
	var b strings.Builder
	for _, p := range t.Permissions {
		fmt.Fprintf(&b, " permissions={%s", p.Mode)
		for i, list := range [][]spec.PermissionRule{p.Allow, p.Ask, p.Deny} {
			for _, r := range list {
				fmt.Fprintf(&b, " %s %s", []string{"allow", "ask", "deny"}[i], r.Text)
			}
		}
		b.WriteString("}")
	}
	for _, r := range t.AddedRules {
		b.WriteString(" granted=" + r.Text)
	}
	return b.String()
}
