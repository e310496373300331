package control

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/term"
)

// Permissions makes the command permissions.
func (cs *Commands) Permissions() *cobra.Command {
	var r client.PermissionsRequest
	c := &cobra.Command{
		Use:   "permissions RUN [set]",
		Short: "Show and narrow what agents of a run may do; change rules",
		Long: `Show the permission rules and modes of a run and of its agents, and what operators have
taken from them since it began.

set takes rights from an agent and all agents below it, those that begin later
included, from their next call on: rules that deny or ask, or a stricter mode. Rights
of a live agent only become narrower: a mode that is not stricter is refused. A call
that runs already is not undone.

The commands below are about the rules in files, which new runs get. A run whose id is the
name of one of them is meant after "--": troupe permissions -- list`,
		Example: `  troupe permissions list
  troupe permissions test Bash 'git push origin main'
  troupe permissions last
  troupe permissions last set --deny 'Bash(git push:*)'
  troupe permissions last set --agent root-1-0 --ask Write --ask 'mcp__github'
  troupe permissions last set --mode plan`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		Args:        checkPermissionsArguments,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkNarrowing(args, r, cs.Console.Getenv); err != nil {
				return err
			}
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) (err error) {
				if len(args) == 1 {
					return cs.showPermissions(ctx, s, run)
				}
				r.RunID, r.By = run, request.UserName()
				if r.Agent, err = s.FindAgent(ctx, run, r.Agent); err != nil {
					return err
				}
				if err := client.NarrowPermissions(ctx, s.Client, r); err != nil {
					return err
				}
				if err := cs.printInForce(ctx, s, run, narrowingLine(r), narrowingFields(r)); err != nil {
					return err
				}
				return cs.noteUnofferedRules(ctx, s, r)
			})
		},
	}
	c.Flags().StringVar(&r.Agent, "agent", "", "with set: this agent and the agents below it ("+command.AgentFlag+"; default: all)")
	c.Flags().StringArrayVar(&r.Deny, "deny", nil, "with set: calls that never run, such as 'Bash(rm:*)'; may be repeated")
	c.Flags().StringArrayVar(&r.Ask, "ask", nil, "with set: calls that wait for a person; may be repeated")
	c.Flags().StringVar(&r.Mode, "mode", "", "with set: a stricter permission mode: acceptEdits, default, dontAsk or plan")
	return c
}

// narrowingLine says in one line what was taken from whom.
func narrowingLine(r client.PermissionsRequest) string {
	var parts []string
	for _, rule := range r.Deny {
		parts = append(parts, "deny "+rule)
	}
	for _, rule := range r.Ask {
		parts = append(parts, "ask "+rule)
	}
	if r.Mode != "" {
		parts = append(parts, "mode "+r.Mode)
	}
	of := "all agents"
	if r.Agent != "" {
		of = r.Agent + " and the agents below it"
	}
	return term.CleanLine("from their next call on, " + of + ": " + strings.Join(parts, ", "))
}

// narrowingFields is narrowingLine in JSON.
func narrowingFields(r client.PermissionsRequest) map[string]any {
	fields := map[string]any{}
	if r.Agent != "" {
		fields["agent"] = r.Agent
	}
	if len(r.Deny) > 0 {
		fields["deny"] = r.Deny
	}
	if len(r.Ask) > 0 {
		fields["ask"] = r.Ask
	}
	if r.Mode != "" {
		fields["mode"] = r.Mode
	}
	return fields
}

func checkPermissionsArguments(c *cobra.Command, args []string) error {
	if len(args) == 2 && args[1] != "set" {
		return exit.UsageError("use set, or leave it out", "permissions can set, not %q", args[1])
	}
	if len(args) == 2 {
		return nil
	}
	return command.Exactly("RUN")(c, args)
}

// checkNarrowing checks that the flags match the arguments, and that a person runs the command.
func checkNarrowing(args []string, r client.PermissionsRequest, getenv func(string) string) error {
	hint := "troupe permissions " + args[0] + " set --deny RULE"
	switch set := len(args) == 2; {
	case !set && (r.Changes() || r.Agent != ""):
		return exit.UsageError(hint, "rights are narrowed with set")
	case set && !r.Changes():
		return exit.UsageError(hint, "set names no rule and no mode")
	case set && (getenv("TROUPE_CALL") != "" || getenv("TROUPE_HOOK") != ""):
		return exit.UsageError("a person does it, in a terminal of their own", "an agent cannot change what agents may do: this is a tool or a hook of a run")
	}
	return nil
}

// noteUnofferedRules says which rules are about a tool that no agent has which they bind: they count if one is given it.
func (cs *Commands) noteUnofferedRules(ctx context.Context, s *session.Session, r client.PermissionsRequest) error {
	rules := slices.Concat(r.Deny, r.Ask)
	if len(rules) == 0 || cs.Console.Quiet {
		return nil
	}
	info, err := s.Describe(ctx, r.RunID)
	if err != nil || info.Description == nil {
		return err
	}
	has := map[string]bool{}
	for _, a := range info.Description.Agents {
		for _, tool := range a.Rights { // those of its children are among them
			has[tool] = has[tool] || r.Agent == "" || r.Agent == string(a.ID)
		}
	}
	for _, text := range rules {
		rule, err := agentfile.ParseRule(text, "", false)
		if err != nil {
			continue // the node has refused it
		}
		parsed, err := permission.Parse(rule.Text)
		isAbout := func(tool string) bool { return has[tool] && permission.IsAbout(parsed.Tool(), tool) }
		if err != nil || slices.ContainsFunc(slices.Collect(maps.Keys(has)), isAbout) {
			continue
		}
		cs.Console.Say(term.CleanLine("note: no agent that the rule " + rule.Text + " binds has " + parsed.Tool() + ": it has an effect once one gets the tool (troupe context RUN --add-tool)"))
	}
	return nil
}

// showPermissions shows the permissions of a run.
func (cs *Commands) showPermissions(ctx context.Context, s *session.Session, run string) error {
	doc, err := client.Permissions(ctx, s.Client, run)
	if err != nil {
		return err
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(doc)
	}
	p := cs.Console.NewPage()
	if doc.Permissions == nil {
		p.AddLine("a release without permissions began the run: its hooks decide about calls")
		return cs.Console.PrintLines(p.Lines)
	}
	var rows [][]string
	rows = append(rows, ruleRows("the run", *doc.Permissions)...)
	for _, a := range doc.Agents {
		if own, ok := doc.Definitions[a.Name]; ok {
			rows = append(rows, ruleRows(term.CleanLine(a.Name), own)...)
			delete(doc.Definitions, a.Name)
		}
	}
	for _, rule := range doc.AddedRules {
		rows = append(rows, []string{"the run", "allow", term.CleanLine(rule.Text), term.FormatRuleOrigin(rule.From)})
	}
	for _, n := range doc.Narrowings {
		rows = append(rows, ruleRows(string(n.Agent)+" and below", n.Permissions())...)
	}
	if len(rows) > 0 {
		p.AddTable(console.Left("OF", "WHAT", "RULE", "FROM"), rows)
		p.Lines = append(p.Lines, "")
	}
	rows = nil
	for _, a := range doc.Agents {
		state := "works"
		if a.Ended {
			state = "ended"
		}
		rows = append(rows, []string{term.CleanLine(string(a.ID)), term.CleanLine(a.Name), string(a.Mode), state})
	}
	if doc.AgentsLeftOut > 0 {
		rows = append(rows, []string{"…", "and " + console.CountOf(doc.AgentsLeftOut, "agent")})
	}
	p.AddTable(console.Left("ID", "AGENT", "MODE", "STATE"), rows)
	return cs.Console.PrintLines(p.Lines)
}

// ruleRows are the mode and the rules of some permissions, one a row.
func ruleRows(of string, p spec.Permissions) (rows [][]string) {
	if p.Mode != "" {
		rows = append(rows, []string{of, "mode", string(p.Mode), ""})
	}
	add := func(what string, rules []spec.PermissionRule) {
		for _, r := range rules {
			rows = append(rows, []string{of, what, term.CleanLine(r.Text), term.CleanLine(r.From)})
		}
	}
	add("deny", p.Deny)
	add("ask", p.Ask)
	add("allow", p.Allow)
	for _, limit := range permission.LimitingRules(p) {
		add("only", limit)
	}
	return rows
}
