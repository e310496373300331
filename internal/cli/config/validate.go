package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/workdir"
)

// validation is what validate prints as JSON.
type validation struct {
	Valid    bool             `json:"valid"`
	Files    []string         `json:"files"`
	Problems []console.Remark `json:"problems"`
	Notes    []console.Remark `json:"notes"`
}

func (cs *Commands) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a settings file and print every error with its line",
		Long: `Check a file of settings: the one that is named, or else troupe.yaml of this
directory and the user's, the environment variables TROUPE_*, and the
settings.json files of Claude Code. The exit code is 2 if something is wrong.`,
		Example: "  troupe config validate\n  troupe config validate ./troupe.yaml -o json | jq .problems",
		// A broken file must not keep this command from saying so.
		Annotations: map[string]string{command.Formats: command.DataFormats, command.WithoutSettings: "yes"},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return command.Exactly("FILE")(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all := len(args) == 0
			if all {
				for _, file := range []string{config.FileName, config.UserFile()} {
					if _, err := os.Stat(file); err == nil {
						args = append(args, file)
					}
				}
			}
			return cs.validateFiles(args, all)
		},
	}
}

// validateFiles checks files, and with all the variables TROUPE_* and the settings of Claude Code too.
func (cs *Commands) validateFiles(files []string, all bool) error {
	c := validation{Files: files, Problems: []console.Remark{}, Notes: []console.Remark{}}
	if files == nil {
		c.Files = []string{}
	}
	for _, file := range files {
		problems, notes := fileProblems(file)
		c.Problems, c.Notes = append(c.Problems, problems...), append(c.Notes, notes...)
	}
	if all {
		for _, p := range config.ValidateVariables(cs.Console.Getenv, os.Environ(), checkModel) {
			c.Problems = append(c.Problems, console.Remark{Text: strings.TrimPrefix(p.Error(), config.ErrSetting.Error()+" ")})
		}
		problems, notes := claudeProblems()
		c.Problems, c.Notes = append(c.Problems, problems...), append(c.Notes, notes...)
	}
	c.Valid = len(c.Problems) == 0
	var err error
	if cs.Console.Output != "table" {
		err = cs.Console.PrintData(c)
	} else {
		err = cs.Console.PrintLines(cs.validationLines(c))
	}
	if err != nil || c.Valid {
		return err
	}
	return exit.WithCode(exit.Usage)
}

// fileProblems returns all problems of a file, including those that other packages find.
func fileProblems(file string) (problems, notes []console.Remark) {
	for _, p := range config.ValidateFile(file, checkModel) {
		problems = append(problems, splitPlace(strings.TrimPrefix(p.Error(), config.ErrSetting.Error()+" ")))
	}
	if len(problems) > 0 && !isYAML(file) {
		return problems, nil
	}
	reported := problems
	_, hookNotes, err := agentfile.LoadHooks(file)
	shared, shareErr := loadShared(file)
	for _, p := range agentfile.SplitProblems(errors.Join(err, shareErr)) {
		if p.Path == "" {
			problems = append(problems, splitPlace(strings.TrimPrefix(p.Error(), "agentfile: ")))
			continue
		}
		if p.Line > 0 && slices.ContainsFunc(reported, func(r console.Remark) bool { return r.Line == p.Line }) {
			continue // both packages read the key, such as permission_mode
		}
		problems = append(problems, console.Remark{Path: p.Path, Line: p.Line, Text: p.Text()})
	}
	return problems, append(agents.RemarksOf(hookNotes, ""), unknownTools(shared.Permissions)...)
}

// unknownTools notes rules about tools that troupe does not have: a misspelled rule denies nothing.
func unknownTools(p spec.Permissions) (notes []console.Remark) {
	for _, r := range slices.Concat(p.Allow, p.Ask, p.Deny) {
		if name, unknown := agentfile.NamesUnknownTool(r); unknown {
			notes = append(notes, splitPlace(fmt.Sprintf("%s: no tool of troupe is called %s: the rule matches nothing, unless an agent file or a program brings a tool of that name", r.From, name)))
		}
	}
	return notes
}

// loadShared reads a file as a run does: that of a directory may not set everything.
func loadShared(file string) (agentfile.SharedSettings, error) {
	if config.HoldsForDirectory(file) {
		return agentfile.LoadDirShared(filepath.Dir(file), filepath.Base(file))
	}
	return agentfile.LoadShared(file)
}

// checkModel returns what a run says about a name that is none of a model. Credentials are no matter of a file.
func checkModel(name string) error {
	_, err := provider.Choose(context.Background(), provider.Config{Model: name, Env: os.Getenv})
	if errors.Is(err, provider.ErrName) {
		return err
	}
	return nil
}

// claudeProblems returns all problems of the settings of Claude Code, the user's and those of this directory, and
// what of them does not hold.
func claudeProblems() (problems, notes []console.Remark) {
	here := workdir.Real(".")
	list, err := agentfile.ReadClaudeSettings(agentfile.ClaudeHome(), here, func(string, string) bool { return true })
	for _, p := range agentfile.SplitProblems(err) {
		path := p.Path
		if rel, ok := workdir.Below(here, path); ok {
			path = rel
		}
		problems = append(problems, console.Remark{Path: path, Line: p.Line, Text: p.Text()})
	}
	for _, s := range list {
		for _, text := range s.Without {
			notes = append(notes, console.Remark{Path: s.Name, Text: "without effect here: " + text})
		}
	}
	return problems, notes
}

// isYAML reports whether the file exists and is YAML; it does not check the keys.
func isYAML(file string) bool {
	data, err := safefile.Read(file, config.FileBytesMax)
	var doc map[string]any
	return err == nil && yaml.Unmarshal(data, &doc) == nil
}

var placePattern = lazyregexp.New(`^(.+?):(\d+): (.*)$`)

// splitPlace takes apart a message that begins with a file and a line.
func splitPlace(text string) console.Remark {
	m := placePattern.FindStringSubmatch(text)
	if m == nil {
		return console.Remark{Text: text}
	}
	line, err := strconv.Atoi(m[2])
	if err != nil {
		return console.Remark{Text: text}
	}
	return console.Remark{Path: m[1], Line: line, Text: m[3]}
}

func (cs *Commands) validationLines(c validation) []string {
	var lines []string
	for _, p := range c.Problems {
		lines = append(lines, cs.Console.Style.Red("error:")+" "+term.CleanLine(p.String()))
	}
	for _, n := range c.Notes {
		lines = append(lines, cs.Console.Style.Yellow("note:")+" "+term.CleanLine(n.String()))
	}
	if len(c.Files) == 0 && len(c.Problems) > 0 {
		return lines
	}
	if len(c.Files) == 0 {
		return append(lines, "there is no "+config.FileName+" here, and none of the user: the defaults hold")
	}
	return append(lines, term.CleanLine(strings.Join(c.Files, ", "))+": "+console.CountOf(len(c.Problems), "problem"))
}
