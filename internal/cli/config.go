package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/supervisor"
)

func (a *configCommands) configCommand() *cobra.Command {
	c := commandGroup("config", "Show what is set and where, check a file of settings, print its schema",
		"A flag goes before an environment variable TROUPE_*, that before troupe.yaml of the\ndirectory, that before the user's file, that before the default. The directory's file\nmay not say where state is or what models cost, and may only lower the limit in money.",
		"  troupe config view\n  troupe config validate troupe.yaml")
	c.AddCommand(a.configView(), a.configValidate(), a.configSchema())
	return c
}

// setting is one setting as it counts.
type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, env, file, default
	From   string `json:"from,omitempty"`
}

func (a *configCommands) configView() *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use: "view", Args: none,
		Short: "Show every setting as it counts for a run, and where its value comes from",
		Long: `Show every setting as it counts for a run with the same flags: its value, and
whether that comes from a flag, the environment, a file (with its line) or is the
default.`,
		Example:     "  troupe config view\n  TROUPE_MAX_TURNS=5 troupe config view --dir ./project --max-tokens 10000 -o json | jq '.[] | select(.source != \"default\")'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := a.settings(c)
			if err != nil {
				return err
			}
			if a.console.output != "table" {
				return a.console.printData(list)
			}
			var rows [][]string
			for _, s := range list {
				from := s.Source
				if s.From != "" {
					from += " " + s.From
				}
				rows = append(rows, []string{s.Key, term.Line(s.Value), term.Line(from)})
			}
			return a.console.table([]string{"SETTING", "VALUE", "FROM"}, rows)
		},
	}
	flags.add(c.Flags())
	return c
}

// settings are all settings as they count for a command.
func (a *configCommands) settings(c *cobra.Command) ([]setting, error) {
	found, err := config.Load(settingPlaces(c, a.console.getenv))
	if err != nil {
		return nil, &failure{code: exitUsage, err: err, hint: "troupe config schema shows what can be set"}
	}
	var list []setting
	for _, key := range config.Keys() {
		f := c.Flags().Lookup(config.Setting{Key: key}.Flag())
		s, set := found[key]
		switch {
		case f != nil && f.Changed:
			list = append(list, setting{key, f.Value.String(), "flag", "--" + f.Name})
		case set && strings.HasPrefix(s.From, "TROUPE_"):
			list = append(list, setting{key, s.Value, "env", s.From})
		case set:
			list = append(list, setting{key, s.Value, "file", s.From})
		default:
			list = append(list, setting{Key: key, Value: a.byDefault(c.Context(), key), Source: "default"})
		}
	}
	return list, nil
}

// byDefault returns what a setting means where no file, flag or variable sets it.
func (a *configCommands) byDefault(ctx context.Context, key string) string {
	switch key {
	case "model":
		choice, err := chooseModel(ctx, a.sessions, "")
		if err != nil {
			return err.Error()
		}
		return choice.Name() + " (" + choice.Why + ")"
	case "store_dir":
		return statedir.StateDir("")
	case "color":
		return "auto"
	case "output":
		return "table, or text for run, start, attach and result"
	case "max_turns":
		return fmt.Sprint(spec.TurnsRoot)
	case "max_tokens":
		return fmt.Sprintf("%d for builtin/scout, else %d", node.ScoutTokens, node.ModelTokens)
	case "max_tool_calls":
		return fmt.Sprint(supervisor.CallsMax)
	case "max_depth":
		return fmt.Sprint(supervisor.DepthMax)
	case "max_children":
		return fmt.Sprint(supervisor.ChildrenMax)
	case "max_messages":
		return fmt.Sprint(supervisor.MessagesMax)
	case "max_agents":
		return fmt.Sprint(supervisor.AgentsMax)
	case "max_budget_usd":
		return fmt.Sprintf("%g with a paid key and no --max-tokens of yours, else none", float64(node.PaidNano)/nanoUSD)
	case "use_tokens":
		return "0: an agent stops when it believes that it is done"
	case "timeout":
		return took(spec.SoftDefaultMS)
	case "max_live_runs":
		return fmt.Sprint(node.MaxLiveRuns)
	case "journal_patience":
		return journalPatience.String()
	}
	return "none"
}

// configDoc is what validate prints as JSON.
type configDoc struct {
	Valid    bool     `json:"valid"`
	Files    []string `json:"files"`
	Problems []remark `json:"problems"`
	Notes    []remark `json:"notes"`
}

func (a *configCommands) configValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a file of settings and show all that is wrong, with lines",
		Long: `Check a file of settings: the one that is named, or else troupe.yaml of this
directory and the user's. The exit code is 2 if something is wrong.`,
		Example: "  troupe config validate\n  troupe config validate ./troupe.yaml -o json | jq .problems",
		// A broken file must not keep this command from saying so.
		Annotations: map[string]string{formats: dataFormats, withoutSettings: "yes"},
		Args: func(c *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return exactly("FILE")(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, file := range []string{config.FileName, config.UserFile()} {
					if _, err := os.Stat(file); err == nil {
						args = append(args, file)
					}
				}
			}
			return a.validateConfig(args)
		},
	}
}

func (a *configCommands) validateConfig(files []string) error {
	c := configDoc{Files: files, Problems: []remark{}, Notes: []remark{}}
	if files == nil {
		c.Files = []string{}
	}
	for _, file := range files {
		problems, notes := configProblems(file)
		c.Problems, c.Notes = append(c.Problems, problems...), append(c.Notes, notes...)
	}
	c.Valid = len(c.Problems) == 0
	var err error
	if a.console.output != "table" {
		err = a.console.printData(c)
	} else {
		err = a.console.lines(a.configText(c))
	}
	if err != nil || c.Valid {
		return err
	}
	return ended(exitUsage)
}

// configProblems returns all problems of a file, including those that other packages find.
func configProblems(file string) (problems, notes []remark) {
	for _, p := range config.Validate(file) {
		problems = append(problems, placed(strings.TrimPrefix(p.Error(), config.ErrSetting.Error()+" ")))
	}
	if len(problems) > 0 && !isText(file) {
		return problems, nil
	}
	_, hookNotes, err := agentfile.Hooks(file)
	_, shareErr := agentfile.Share(file)
	for _, p := range agentfile.Problems(errors.Join(err, shareErr)) {
		if p.Path == "" {
			problems = append(problems, placed(strings.TrimPrefix(p.Error(), "agentfile: ")))
			continue
		}
		problems = append(problems, remark{p.Path, p.Line, p.Text()})
	}
	return problems, notesOf(hookNotes, "")
}

// isText reports whether the file exists and is YAML; it does not check the keys.
func isText(file string) bool {
	data, err := safefile.Read(file, config.FileBytesMax)
	var doc map[string]any
	return err == nil && yaml.Unmarshal(data, &doc) == nil
}

var placeForm = regexp.MustCompile(`^(.+?):(\d+): (.*)$`)

// placed takes apart a message that begins with a file and a line.
func placed(text string) remark {
	m := placeForm.FindStringSubmatch(text)
	if m == nil {
		return remark{Text: text}
	}
	line, err := strconv.Atoi(m[2])
	if err != nil {
		return remark{Text: text}
	}
	return remark{m[1], line, m[3]}
}

func (a *configCommands) configText(c configDoc) []string {
	var lines []string
	for _, p := range c.Problems {
		lines = append(lines, a.console.style.Red("error:")+" "+term.Line(p.String()))
	}
	for _, n := range c.Notes {
		lines = append(lines, a.console.style.Yellow("note:")+" "+term.Line(n.String()))
	}
	if len(c.Files) == 0 {
		return append(lines, "there is no "+config.FileName+" here, and none of the user: the defaults hold")
	}
	return append(lines, term.Line(strings.Join(c.Files, ", "))+": "+countOf(len(c.Problems), "problem"))
}

func (a *configCommands) configSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Args: none,
		Short:       "Print the JSON Schema of troupe.yaml, for editors",
		Example:     "  troupe config schema > troupe.schema.json\n  echo '# yaml-language-server: $schema=troupe.schema.json' >> troupe.yaml",
		Annotations: map[string]string{formats: "json jsonl yaml table", withoutSettings: "yes"},
		RunE: func(*cobra.Command, []string) error {
			raw, err := config.SchemaJSON()
			if err != nil {
				return err
			}
			if a.console.output == "table" {
				return a.console.put(raw)
			}
			return a.console.printJSON(raw)
		},
	}
}
