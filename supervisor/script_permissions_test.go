package supervisor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

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
		name := "permissions"
		if p.Narrows {
			name = "narrowing"
		}
		fmt.Fprintf(&b, " %s={%s", name, p.Mode)
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

// parseNarrowing is `narrow of=root-1-0 by=ann`, with owner for that of the run, with a line `mode MODE`, `ask RULE` or `deny RULE` each.
func parseNarrowing(t *testing.T, d *datadriven.TestData) supervisor.PermissionsSet {
	t.Helper()
	f := supervisor.PermissionsSet{Agent: spec.ID(argValue(t, d, "of")), By: argValue(t, d, "by"), ByOwner: d.HasArg("owner")}
	for line := range strings.Lines(d.Input) {
		word, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		rule := spec.PermissionRule{Text: text, From: "set by " + f.By}
		switch word {
		case "mode":
			f.Rights.Mode = spec.PermissionMode(text)
		case "ask":
			f.Rights.Ask = append(f.Rights.Ask, rule)
		case "deny":
			f.Rights.Deny = append(f.Rights.Deny, rule)
		default:
			t.Fatalf("%s: %q is not a line of a narrowing", d.Pos, line)
		}
	}
	return f
}
