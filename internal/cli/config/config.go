// Package config holds the commands that show and check the settings.
package config

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/follow"
	"github.com/troupe-run/troupe/internal/cli/models"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/namedlimit"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/telemetry"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/throttle"
	"github.com/troupe-run/troupe/supervisor"
)

// Commands show and check the settings.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// Config makes the command config.
func (cs *Commands) Config() *cobra.Command {
	c := command.Group("config", "Show settings and their sources, or validate a settings file",
		"Precedence: flag, environment variable TROUPE_*, troupe.yaml of the directory, the\nuser's file, default. The directory's file cannot set the state directory or model\nprices, and can only lower the limit in dollars.",
		"  troupe config view\n  troupe config validate troupe.yaml")
	c.AddCommand(cs.viewCommand(), cs.validateCommand(), cs.schemaCommand())
	return c
}

// setting is one setting as it counts.
type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, env, file, default
	From   string `json:"from,omitempty"`
}

func (cs *Commands) viewCommand() *cobra.Command {
	var flags request.Flags
	c := &cobra.Command{
		Use: "view", Args: command.NoArguments,
		Short: "Show the effective value of every setting and its source",
		Long: `Show the effective value of every setting for a run with the same flags, and its
source: a flag, the environment, a file (with its line) or the default.`,
		Example:     "  troupe config view\n  TROUPE_MAX_TURNS=5 troupe config view --dir ./project -o json |\n    jq '.[] | select(.source != \"default\")'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := cs.effectiveSettings(c)
			if err != nil {
				return err
			}
			if cs.Console.Output != "table" {
				return cs.Console.PrintData(list)
			}
			var rows [][]string
			for _, s := range list {
				from := s.Source
				if s.From != "" {
					from += " " + s.From
				}
				rows = append(rows, []string{s.Key, term.CleanLine(s.Value), term.CleanLine(from)})
			}
			return cs.Console.PrintTable([]string{"SETTING", "VALUE", "FROM"}, rows)
		},
	}
	flags.AddFlags(c.Flags())
	return c
}

// effectiveSettings are all settings as they count for a command.
func (cs *Commands) effectiveSettings(c *cobra.Command) ([]setting, error) {
	found, err := command.LoadSettings(c, cs.Console.Getenv)
	if err != nil {
		return nil, &exit.Failure{Code: exit.Usage, Err: err, Hint: "troupe config schema lists the settings"}
	}
	var list []setting
	for _, key := range config.SettingKeys() {
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
			list = append(list, setting{Key: key, Value: cs.defaultText(c.Context(), key), Source: "default"})
		}
		if last := &list[len(list)-1]; key == "otlp_endpoint" {
			last.Value = telemetry.WithoutCredentials(last.Value)
		}
	}
	return list, nil
}

// defaultText returns what a setting means where no file, flag or variable sets it.
func (cs *Commands) defaultText(ctx context.Context, key string) string {
	switch key {
	case "model":
		choice, err := models.Choose(ctx, cs.Sessions, "")
		if err != nil {
			return err.Error()
		}
		return choice.Name() + " (" + choice.Why + ")"
	case "store_dir":
		return statedir.StateDir("")
	case "log_store":
		return "where the state directory keeps its logs; " + statedir.DefaultLogStore + " for a new one"
	case "events_content":
		return node.EventsFull + ", and " + node.EventsWithoutTexts + " on a server that nodes share"
	case "priority":
		return string(throttle.PriorityNormal)
	case "color":
		return "auto"
	case "output":
		return "table, or text for run, start, follow and result"
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
	case "max_backlog":
		return fmt.Sprint(spec.BacklogDefault)
	case "backlog_lease":
		return console.Took(spec.LeaseDefaultMS)
	case "max_agents":
		return fmt.Sprint(supervisor.AgentsMax)
	case "max_budget_usd":
		return fmt.Sprintf("%g with a paid key and no --max-tokens of yours, else none", float64(node.PaidNano)/budget.NanoPerUSD)
	case "use_tokens":
		return "0: an agent stops when it believes that it is done"
	case "timeout":
		return console.Took(spec.SoftDefaultMS)
	case "park_timeout":
		return console.Took(spec.ParkDefaultMS)
	case "reconcile_every":
		return node.ReconcileEveryDefault.String()
	case "max_live_runs":
		return fmt.Sprint(node.MaxLiveRuns)
	case "retain_age":
		return "30d"
	case "retain_size":
		return "2GiB"
	case "log_patience":
		return follow.LogPatience.String()
	case "permission_mode":
		return string(spec.ModeDefault)
	case "question_timeout":
		return "none: questions stay open"
	}
	return cmp.Or(namedDefault(key), "none")
}

// namedDefault is the default of a limit, as its help states it in "(default …)"; "" for a setting that is none.
func namedDefault(key string) string {
	for _, limit := range namedlimit.All() {
		if _, text, ok := strings.Cut(limit.Text, "(default"); ok && limit.Request == key {
			text, _, _ = strings.Cut(text, ")")
			return strings.TrimLeft(text, ": ")
		}
	}
	return ""
}

func (cs *Commands) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Args: command.NoArguments,
		Short:       "Print the JSON Schema of troupe.yaml, for editors",
		Example:     "  troupe config schema > troupe.schema.json\n  echo '# yaml-language-server: $schema=troupe.schema.json' >> troupe.yaml",
		Annotations: map[string]string{command.Formats: "json jsonl yaml table", command.WithoutSettings: "yes"},
		RunE: func(*cobra.Command, []string) error {
			raw, err := config.SchemaJSON()
			if err != nil {
				return err
			}
			if cs.Console.Output == "table" {
				return cs.Console.Write(raw)
			}
			return cs.Console.PrintJSON(raw)
		},
	}
}
