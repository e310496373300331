package rulefiles

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/trust"
)

func (cs *Commands) remove() *cobra.Command {
	var g agents.Sources
	var list string
	c := &cobra.Command{
		Use: "remove RULE", Aliases: []string{"rm"}, Args: takes(command.Exactly("RULE")),
		Short: "Remove a permission rule from your own files",
		Long: `Remove a rule that "troupe answer ... --always project" or you wrote: from your rules for
a directory and from your own troupe.yaml. The command names each file. It does not
change the files of a directory, of agents and of Claude Code, and leaves comments as
they are. Runs that have begun keep their rules.

For a run whose id is "remove", write: troupe permissions -- remove`,
		Example:     "  troupe permissions remove 'shell(make test)'\n  troupe permissions remove 'Bash(git push:*)' --list ask --dir ~/src/site",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := request.RefuseAgents(cs.Console.Getenv); err != nil {
				return err
			}
			if err := g.Complete(); err != nil {
				return err
			}
			return cs.removeRule(g, args[0], list)
		},
	}
	c.Flags().StringVar(&g.Dir, "dir", ".", "directory whose rules of yours are looked at")
	c.Flags().StringVar(&list, "list", "", "list of the rule, if several have it: allow, ask, deny or allow_tainted")
	return c
}

func (cs *Commands) removeRule(g agents.Sources, text, list string) error {
	parsed, err := agentfile.ParseRule(text, "RULE", false)
	if err != nil {
		return exit.UsageError("troupe permissions list shows the rules", "%v", err)
	}
	user := config.UserFile()
	var found []agentfile.WrittenRule
	for _, file := range []string{agentfile.ProjectFile(filepath.Dir(user), trust.ResolvePath(g.Dir)), user} {
		rules, err := agentfile.FindRules(file)
		if err != nil {
			return &exit.Failure{Code: exit.Usage, Err: err, Hint: "troupe config validate shows all that is wrong"}
		}
		for _, r := range rules {
			if r.Rule == parsed.Text && (list == "" || r.List == list) {
				found = append(found, r)
			}
		}
	}
	if len(found) == 0 {
		return cs.explainMissing(g, parsed.Text)
	}
	if i := slices.IndexFunc(found, func(r agentfile.WrittenRule) bool { return r.List != found[0].List }); i > 0 {
		return exit.UsageError("--list "+found[0].List+" or --list "+found[i].List, "%s is a rule of two lists: %s (%s:%d) and %s (%s:%d)",
			parsed.Text, found[0].List, found[0].File, found[0].Line, found[i].List, found[i].File, found[i].Line)
	}
	slices.Reverse(found) // the lines of rules above stay as they were found
	for _, r := range found {
		if err := agentfile.RemoveRule(r); errors.Is(err, agentfile.ErrByHand) {
			return exit.UsageError("open the file and remove the rule there", "%s:%d: the rule %s is written in a way that only you can change", r.File, r.Line, r.Rule)
		} else if err != nil {
			return err
		}
	}
	slices.Reverse(found)
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(found)
	}
	var lines []string
	for _, r := range found {
		lines = append(lines, fmt.Sprintf("%s is removed from %s of %s", r.Rule, r.List, r.File))
	}
	return cs.Console.PrintLines(lines)
}

// explainMissing says where a rule is that this command does not remove.
func (cs *Commands) explainMissing(g agents.Sources, text string) error {
	_, p, err := cs.rulesOf(&g, "")
	if err != nil {
		return err
	}
	var texts []string
	for _, r := range rulesIn(p) {
		if r.Rule == text {
			return exit.UsageError("change that file yourself", "the rule %s comes from %s, which this command does not change", text, r.From)
		}
		texts = append(texts, r.Rule)
	}
	hint := "troupe permissions list shows the rules"
	if near := config.NearestName(text, texts); near != "" {
		hint = "did you mean " + near + "?"
	}
	return exit.UsageError(hint, "no file of yours has the rule %s", text)
}
