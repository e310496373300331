package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/term"
)

func (cs *Commands) describeCommand() *cobra.Command {
	var g Sources
	return g.AddFlags(&cobra.Command{
		Use: "describe NAME", Args: command.Exactly("NAME"),
		Short:       "Show an agent's definition and warnings for its author",
		Example:     "  troupe agents describe historian\n  troupe agents describe reviewer --agents ./team -o json",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := g.ReadRoster()
			if err != nil {
				return err
			}
			i, err := r.lookup(args[0])
			if err != nil {
				return err
			}
			agents := []Info{i}
			why := cs.findTrifectas(g, agents)
			if d := agents[0].def; d != nil {
				r.notes = slices.Concat(r.notes, cs.noteIgnored(g, *d), cs.noteCutRules(g, d.Name, d.Path))
			}
			return cs.describeAgent(r, agents[0], why)
		},
	})
}

// agentDoc is what describe prints as JSON.
type agentDoc struct {
	Info
	PermissionMode string           `json:"permission_mode,omitempty"`
	Effort         string           `json:"effort,omitempty"`
	Temperature    *float64         `json:"temperature,omitempty"`
	Tokens         int64            `json:"budget_tokens,omitempty"`
	USD            float64          `json:"budget_usd,omitempty"`
	Share          float64          `json:"budget_share,omitempty"`
	TimeoutMS      int64            `json:"timeout_ms,omitempty"`
	Fallback       []string         `json:"fallback,omitempty"`
	Skills         []string         `json:"skills,omitempty"`
	Memory         string           `json:"memory,omitempty"`
	MCPServers     []string         `json:"mcp_servers,omitempty"`
	OutputSchema   string           `json:"output_schema,omitempty"`
	Constraints    []string         `json:"constraints,omitempty"`
	Criteria       []string         `json:"criteria,omitempty"`
	FailIf         []string         `json:"fail_if,omitempty"`
	Pool           string           `json:"pool,omitempty"`
	Export         bool             `json:"export,omitempty"`
	Notes          []console.Remark `json:"notes"`
}

func (cs *Commands) describeAgent(r Roster, i Info, why string) error {
	doc := agentDoc{Info: i, Notes: []console.Remark{}}
	if d := i.def; d != nil {
		doc.PermissionMode, doc.Effort, doc.Temperature = string(d.PermissionMode), d.Effort, d.Temperature
		doc.Tokens, doc.USD, doc.Share = d.Budget.Tokens, d.Budget.USD, d.Budget.Share
		doc.TimeoutMS, doc.Fallback, doc.Skills, doc.Memory = d.Timeout.Milliseconds(), d.Fallback, d.Skills, d.Memory
		doc.OutputSchema, doc.Pool, doc.Export = d.OutputSchema, d.Placement.Pool, d.Export
		doc.Constraints, doc.Criteria, doc.FailIf = d.Constraints, d.Criteria, d.FailIf
		for _, s := range d.MCPServers {
			doc.MCPServers = append(doc.MCPServers, s.Name)
		}
		doc.Notes = RemarksOf(r.notes, d.Path)
	}
	switch {
	case why != "":
		doc.Notes = append(doc.Notes, console.Remark{Path: i.From, Text: unknownTrifecta + why})
	case i.Trifecta != nil:
		doc.Notes = append(doc.Notes, console.Remark{Path: i.From, Text: i.Trifecta.String()})
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(doc)
	}
	p := cs.Console.NewPage()
	turns := "the default"
	if i.MaxTurns > 0 {
		turns = fmt.Sprint(i.MaxTurns)
	}
	p.AddPairs([2]string{"name", i.Name}, [2]string{"from", i.From}, [2]string{"description", i.Description}, [2]string{"model", cmp.Or(i.Model, "the run's")},
		[2]string{"tools", console.WordsOr(i.Tools, "all of its parent's")}, [2]string{"not", strings.Join(i.Disallowed, " ")},
		[2]string{"commands", strings.Join(i.Commands, " ")}, [2]string{"delegates to", console.WordsOr(i.Delegates, "any")},
		[2]string{"hands off to", strings.Join(i.Handoffs, " ")},
		[2]string{"turns", turns}, [2]string{"budget", budgetText(doc)}, [2]string{"timeout", orEmpty(console.Took(doc.TimeoutMS))},
		[2]string{"fallback", strings.Join(doc.Fallback, ", ")}, [2]string{"permissions", doc.PermissionMode}, [2]string{"effort", doc.Effort},
		[2]string{"skills", strings.Join(doc.Skills, ", ")}, [2]string{"memory", doc.Memory}, [2]string{"mcp", strings.Join(doc.MCPServers, ", ")},
		[2]string{"constraints", strings.Join(doc.Constraints, "\n")}, [2]string{"criteria", strings.Join(doc.Criteria, "\n")}, [2]string{"fails if", strings.Join(doc.FailIf, "\n")},
		[2]string{"answer", schemaText(doc.OutputSchema)}, [2]string{"pool", doc.Pool},
		[2]string{"prompt", fmt.Sprintf("%d bytes: troupe agents prompt %s%s", i.PromptBytes, i.Name, r.flags)})
	if len(doc.Notes) > 0 {
		p.AddHeading("Notes")
		for _, n := range doc.Notes {
			p.Lines = append(p.Lines, term.Wrap(term.CleanLine(n.String()), p.Width)...)
		}
	}
	return cs.Console.PrintLines(p.Lines)
}

// orEmpty returns "" for "-", the sign of a missing text.
func orEmpty(text string) string {
	if text == "-" {
		return ""
	}
	return text
}

func budgetText(d agentDoc) string {
	var parts []string
	if d.Tokens > 0 {
		parts = append(parts, term.FormatTokens(d.Tokens)+" tokens")
	}
	if d.USD > 0 {
		parts = append(parts, term.FormatUSD(d.USD, false))
	}
	if d.Share > 0 {
		parts = append(parts, fmt.Sprintf("%g %% of the run's", d.Share*100))
	}
	return strings.Join(parts, ", ")
}

func schemaText(schema string) string {
	if strings.HasPrefix(schema, "{") {
		return "meets the JSON Schema in the file"
	}
	return schema
}
