package runspec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/supervisor"
)

const permissionsHint = "see docs/permissions.md"

// requestPermissions returns the permissions that a request brings. Nothing proves who wrote a request, so
// what it allows counts for commands only where the sandbox confines them.
func requestPermissions(r client.RunRequest) (p spec.Permissions, err error) {
	if p.Mode, err = agentfile.ParseMode(r.PermissionMode); err != nil {
		return p, refuse.Bad(permissionsHint, "permission_mode: %v", err)
	}
	for _, ref := range agentfile.ParseToolRefs(r.AllowedTools) {
		if ref.Args == "" && !ref.IsRemote() {
			continue // it grants the tool, whose calls are decided about one by one
		}
		rule, err := agentfile.ParseRule(ref.String(), "--allowed-tools", true)
		if err != nil {
			return p, refuse.Bad(permissionsHint, "allowed_tools: %v", err)
		}
		if agentfile.GrantsPart(ref) {
			p.Only = append(p.Only, rule)
			continue
		}
		rule.Confined = true
		p.Allow = append(p.Allow, rule)
	}
	if p.Ask, err = agentfile.ParseRules(r.AskTools, "--ask-tools", false); err != nil {
		return p, refuse.Bad(permissionsHint, "ask_tools: %v", err)
	}
	for _, ref := range agentfile.ParseToolRefs(r.DisallowedTools) {
		if ref.Args == "" || ref.Args == "*" {
			continue // it takes the whole tool away
		}
		rule, err := agentfile.ParseRule(ref.String(), "--disallowed-tools", false)
		if err != nil {
			return p, refuse.Bad(permissionsHint, "disallowed_tools: %v", err)
		}
		p.Deny = append(p.Deny, rule)
	}
	if r.Approvals < 0 || r.Approvals > permission.ApprovalsMax {
		return p, refuse.Bad(permissionsHint,
			"approvals is %d: write 1 or 2, how many people must approve a call that is asked about", r.Approvals)
	}
	if p.Taint, err = permission.ParseTaint(r.Taint); err != nil {
		return p, refuse.Bad(taintHint, "taint: %v", err)
	}
	p.Yes, p.Confined, p.Approvals, p.TaintFiles = r.Yes, true, r.Approvals, r.TaintFiles
	return p, nil
}

// asksNobody reports whether a mode makes the run unattended.
func asksNobody(req acceptedRequest) bool {
	mode := cmp.Or(req.permissions.Mode, req.operator.permissions.Mode, claudeMode(req.claude))
	s := req.settings
	return mode == spec.ModeDontAsk || s != nil && s.File != config.UserFile() && s.Shared.Permissions.Mode == spec.ModeDontAsk
}

// runPermissions returns the permissions of all agents of a run: the operator's, the user's for the
// directory, those of the request, and what the files of the directory ask or deny. Those files may come
// from anyone, so they can only take trust away.
func (b *Builder) runPermissions(req acceptedRequest) (spec.Permissions, error) {
	p := req.operator.permissions
	p.Mode = cmp.Or(p.Mode, claudeMode(req.claude))
	rule := req.operator.shell
	allowed, err := shellRules(rule.Allow, req.operator.place+"tools.shell.allow", true)
	if err != nil {
		return p, err
	}
	denied, err := shellRules(rule.Deny, req.operator.place+"tools.shell.deny", false)
	if err != nil {
		return p, err
	}
	p.Allow, p.Deny = slices.Concat(p.Allow, allowed), slices.Concat(p.Deny, denied)
	project, err := b.cfg.UserRules.ofDirectory(req.workspace, b.cfg.Trust)
	if err != nil {
		return p, err
	}
	p.Allow, p.Ask, p.Deny = slices.Concat(p.Allow, project.Allow), slices.Concat(p.Ask, project.Ask), slices.Concat(p.Deny, project.Deny)
	p.Approvals = max(p.Approvals, project.Approvals)
	p = tightenTaint(p, project)
	asked := req.permissions
	p.Allow, p.Ask, p.Deny = slices.Concat(p.Allow, asked.Allow), slices.Concat(p.Ask, asked.Ask), slices.Concat(p.Deny, asked.Deny)
	p.Only, p.Approvals = asked.Only, max(p.Approvals, asked.Approvals)
	if p, err = withRequestedTaint(p, asked, b.cfg.Trust.RequestsFromUser); err != nil {
		return p, err
	}
	p.Confined = asked.Mode != "" && asked.Mode != p.Mode && !b.cfg.Trust.RequestsFromUser
	p.Mode, p.Yes = cmp.Or(asked.Mode, p.Mode), asked.Yes
	if s := req.settings; s != nil && s.File != config.UserFile() {
		if s.SharedErr != nil {
			return p, refuse.Bad("`troupe config validate` shows the errors of the file", "%s: %s", config.FileName, b.cfg.Trust.DescribeErrors(s.SharedErr))
		}
		local := s.Shared.Permissions
		denied, err := shellRules(deniedByDirectory(s), s.File, false)
		if err != nil {
			return p, err
		}
		p.Ask, p.Deny, p.Approvals = slices.Concat(p.Ask, local.Ask), slices.Concat(p.Deny, local.Deny, denied), max(p.Approvals, local.Approvals)
		p = tightenTaint(p, local)
		if local.Mode != "" {
			p.Mode = permission.StricterMode(local.Mode, p.Mode)
		}
	}
	if i := slices.IndexFunc(req.claude, func(s agentfile.ClaudeSettings) bool { return s.NoBypass }); i >= 0 && p.Mode == spec.ModeBypass {
		return p, refuse.Bad("choose another mode, such as acceptEdits, or remove disableBypassPermissionsMode from that file", "permission mode %s: %s forbids it", p.Mode, req.claude[i].Name)
	}
	// each run records what its agents read: one that continues it may be stricter
	p.Taint = cmp.Or(p.Taint, spec.TaintOff)
	p = withClaudeRules(p, req.claude)
	p.UserEnv = req.isOwn && len(req.claude) > 0 && req.claude[0].Own && req.claude[0].HasEnv
	if p, err = withRealPaths(p, req.workspace); err != nil {
		return p, err
	}
	if p.Approvals < 0 || p.Approvals > permission.ApprovalsMax {
		return p, refuse.Bad(permissionsHint, "the permissions of the node have approvals %d: it may be 1 or 2", p.Approvals)
	}
	if n := len(p.Allow) + len(p.Ask) + len(p.Deny); n > rulesMax {
		return p, refuse.Bad("remove rules that others cover",
			"the run has %d permission rules, at most %d are applied", n, rulesMax)
	}
	if n := permission.RuleBytes(p); n > rulesBytesMax {
		return p, refuse.Bad("remove rules that others cover",
			"the permission rules of the run have %d bytes, at most %d are applied", n, rulesBytesMax)
	}
	return p, nil
}

// Bounds of the rules of a run, so that its first entry fits.
const (
	rulesMax      = 512
	rulesBytesMax = 40 << 10
)

// shellRules are rules about commands, as the settings of the shell list them.
func shellRules(commands []string, from string, allows bool) (list []spec.PermissionRule, err error) {
	for _, c := range commands {
		r, err := agentfile.ParseRule(fmt.Sprintf("%s(%s)", shell.Name, c), from, allows)
		if err != nil {
			return nil, refuse.Bad("write the beginning of a command, such as git log:*", "%s: %v", from, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// deniedByDirectory returns the commands that the settings of the directory deny.
func deniedByDirectory(settings *agentfile.DirectorySettings) []string {
	rules := settings.Shared.Tools
	i := slices.IndexFunc(rules, func(r agentfile.ToolRule) bool { return r.Name == shell.Name })
	if i < 0 {
		return nil
	}
	return rules[i].Deny
}

// withPassedShell marks the agents that only pass the shell on. The permissions of a parent bind its
// children, and an agent that names no tools has those of its parent. The root has no parent: under a root
// that may only pass the shell on, the rules of a child's file allow nothing.
func withPassedShell(defs []supervisor.Definition, root string) []supervisor.Definition {
	defs = slices.Clone(defs)
	for i, d := range defs {
		if d.Name != root && d.Offer != nil && !slices.Contains(d.Offer, shell.Name) {
			own := permission.Merge(spec.Permissions{}, d.Permissions)
			own.ShellForChildren = true
			defs[i].Permissions = &own
		}
	}
	return defs
}
