package runspec

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/supervisor"
)

const policyPageHint = "`troupe policy test FILE` checks a policy; see docs/policy.md"

// requestPolicy returns the policy of a run: that of the request, and then the rules of the directory's settings. That
// file may come from anyone. Its rules come last and can only speak against stops and turns, as all rules do, so they
// take nothing from the user's.
func requestPolicy(files trust.Policy, r client.RunRequest, workspace string, s *agentfile.DirectorySettings) (p supervisor.Policy, err error) {
	if r.Policy != nil {
		if p, err = policy.Compile(*r.Policy); err != nil {
			return p, refuse.Bad(policyPageHint, "%v", err)
		}
	}
	if s == nil || s.SharedErr != nil || s.File == config.UserFile() { // runPermissions reports the error
		return p, nil
	}
	brought, err := policy.ReadSettings(s.File, workspace, s.Shared.Policy, s.Shared.PolicyFile)
	if err != nil {
		return p, refuse.Bad(policyPageHint, "the policy of the directory: %s", files.DescribeErrors(hideContent(err)))
	}
	return addRules(p, brought.Rules, s.File, config.FileName+"/", "(The settings of the directory say:) ")
}

// hideContent makes the error about a policy file one that can be described to any client: by its place.
func hideContent(err error) error {
	bad := (*policy.FileError)(nil)
	if !errors.As(err, &bad) {
		return err
	}
	return &agentfile.Problem{Path: bad.Path, Line: bad.Line, Err: fmt.Errorf("%w: %w", agentfile.ErrField, err)}
}

// broughtPatternsMax bounds the patterns of one file that may come from anyone. A pattern as large as a policy may have
// keeps the supervisor busy for seconds with a long answer that was written for it, and a cancel waits that long.
const broughtPatternsMax = 400

// addRules adds rules of a file behind those of a policy, under names that no other rule has.
func addRules(p supervisor.Policy, rules []supervisor.Rule, source, prefix, because string) (supervisor.Policy, error) {
	if len(rules) == 0 {
		return p, nil
	}
	if cost := supervisor.PatternCost(rules); cost > broughtPatternsMax {
		return p, refuse.Bad(policyPageHint, "the patterns of %s are too complex: %d characters when repetitions are expanded, at most %d", source, cost, broughtPatternsMax)
	}
	p.Rules = slices.Clone(p.Rules)
	for _, r := range rules {
		r.Name, r.Source, r.Why = prefix+r.Name, source, because+r.Why
		p.Rules = append(p.Rules, r)
	}
	p, err := policy.Compile(p)
	if err != nil {
		return p, refuse.Bad(policyPageHint, "with the rules of %s: %v", source, err)
	}
	return p, nil
}

// agentRules returns the rules of an agent file, which are about its agent only.
func agentRules(files trust.Policy, d agentfile.Definition) ([]supervisor.Rule, error) {
	if d.Policy == "" {
		return nil, nil
	}
	p, err := policy.ParseAgent(d.Path, d.Name, []byte(d.Policy))
	if err != nil {
		return nil, refuse.Bad("`troupe agents validate` shows all that is wrong", "agent %s: x-troupe.policy: %s", d.Name, files.DescribeErrors(hideContent(err)))
	}
	return p.Rules, nil
}

// withAgentRules adds the rules of the agents that the run may have.
func (t agentSet) withAgentRules(p supervisor.Policy) (supervisor.Policy, error) {
	for _, d := range t.definitions {
		var err error
		if p, err = addRules(p, t.rules[d.Name], d.Source, fmt.Sprintf("%s/", d.Name), ""); err != nil {
			return p, err
		}
	}
	return p, nil
}
