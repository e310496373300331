// Package policies holds the commands that show, set and test the stop-veto policy of runs.
package policies

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/policy"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/supervisor"
)

// Commands are about the policies of runs.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// Policy makes the command policy.
func (cs *Commands) Policy() *cobra.Command {
	c := command.Group("policy", "Show, replace and test the rules that may veto an agent's stop",
		`A policy is a list of rules. The supervisor of a run asks them when an agent proposes to
stop, and before each turn. docs/policy.md explains the rules.`,
		"  troupe policy test policy.yaml\n  troupe run --policy policy.yaml \"Write report.md\"\n  troupe policy show last")
	c.AddCommand(cs.showCommand(), cs.setCommand(), cs.testCommand())
	return c
}

func (cs *Commands) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Args: command.Exactly("RUN"),
		Short: "Show the rules that are in force in a run, their version, and who set them",
		Long: `Show the rules that are in force in a run, their version, and who set them when.

-o yaml writes them as a policy file: change it, and hand it to troupe policy set.`,
		Example:     "  troupe policy show last\n  troupe policy show 01k9z3 -o yaml > policy.yaml",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], cs.show)
		},
	}
}

func (cs *Commands) show(ctx context.Context, s *session.Session, run string) error {
	info, err := s.Describe(ctx, run)
	if err != nil {
		return err
	}
	p, err := info.Policy()
	if err != nil {
		return err
	}
	switch cs.Console.Output {
	case "table":
		return cs.printPolicy(p)
	case "yaml":
		for i := range p.Rules {
			p.Rules[i].Means = "" // it would no longer be true after a change of the file
		}
		return cs.Console.PrintData(supervisor.Policy{Version: p.Version, Rules: p.Rules})
	}
	return cs.Console.PrintData(p)
}

// printPolicy shows a policy and its rules.
func (cs *Commands) printPolicy(p client.RunPolicy) error {
	page := cs.Console.NewPage()
	set := "with the run"
	if p.Set != nil {
		set = "at " + p.Set.At
		if at, err := time.Parse(time.RFC3339, p.Set.At); err == nil {
			set = console.Age(p.Set.At) + " ago (" + at.Format(time.RFC3339) + ")"
		}
		if p.Set.By != "" {
			set += " by " + p.Set.By
		}
	}
	page.AddPairs([2]string{"run", p.Run}, [2]string{"state", string(p.State)}, [2]string{"version", fmt.Sprint(p.Version)}, [2]string{"set", set})
	if len(p.Rules) == 0 {
		page.AddLine("no rules: no stop and no turn is vetoed")
	} else {
		page.Lines = append(page.Lines, "")
		addRules(page, p.Rules)
	}
	return cs.Console.PrintLines(page.Lines)
}

// addRules shows rules, one after the other.
func addRules(page *console.Page, rules []supervisor.Rule) {
	for _, r := range rules {
		text := "on " + r.On
		if r.Agent != "" {
			text += ", of " + r.Agent
		}
		if r.Use != nil {
			text += ", built-in rule " + r.Use.Rule
		}
		text += "\nif " + r.Describe() + "\n\u201c" + r.Why + "\u201d"
		if r.Source != "" {
			text += "\nfrom " + r.Source
		}
		page.AddPairs([2]string{term.CleanLine(r.Name), text})
	}
}

func (cs *Commands) setCommand() *cobra.Command {
	return &cobra.Command{
		Use: "set RUN FILE", Args: command.Exactly("RUN", "FILE"),
		Short: "Replace the policy of a live run; the next decision follows it",
		Long: `Replace the policy of a live run by the one in FILE, which is YAML or JSON. Every decision
after that follows it: the next proposed stop and the next turn of each agent. All rules
are replaced, also those of agent files and of the directory's settings.

Versions only rise: a FILE without a higher version gets the next one.`,
		Example:     "  troupe policy set last policy.yaml",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := ReadFile(args[1])
			if err != nil {
				return err
			}
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				if err := s.Policy(ctx, client.PolicyRequest{RunID: run, Policy: p, By: request.UserName()}); err != nil {
					return err
				}
				if s.Node != nil && !cs.Console.Quiet {
					cs.Console.Say("recorded; no node is running: " + s.Command("run --resume "+run) + " continues the run")
				}
				return cs.show(ctx, s, run)
			})
		},
	}
}

// ReadFile reads a policy file of the user.
func ReadFile(path string) (supervisor.Policy, error) {
	p, err := policy.Read(path)
	if err != nil {
		return p, exit.UsageError("docs/policy.md has the form of a policy", "%s", strings.TrimPrefix(err.Error(), "policy: "))
	}
	return p, nil
}
