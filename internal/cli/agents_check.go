package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model/anthropic"
	"github.com/troupe-run/troupe/supervisor"
)

// remark is a note or a problem with its place.
type remark struct {
	Path string `json:"path,omitempty"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

func (r remark) String() string {
	switch {
	case r.Path == "":
		return r.Text
	case r.Line == 0:
		return r.Path + ": " + r.Text
	}
	return fmt.Sprintf("%s:%d: %s", r.Path, r.Line, r.Text)
}

func notesOf(list []agentfile.Note, path string) []remark {
	remarks := []remark{}
	for _, n := range list {
		if path == "" || n.Path == path {
			remarks = append(remarks, remark{n.Path, n.Line, n.Text})
		}
	}
	return remarks
}

// agentDoc is what describe prints as JSON.
type agentDoc struct {
	agentInfo
	PermissionMode string   `json:"permission_mode,omitempty"`
	Effort         string   `json:"effort,omitempty"`
	Temperature    *float64 `json:"temperature,omitempty"`
	Tokens         int64    `json:"budget_tokens,omitempty"`
	USD            float64  `json:"budget_usd,omitempty"`
	Share          float64  `json:"budget_share,omitempty"`
	TimeoutMS      int64    `json:"timeout_ms,omitempty"`
	Fallback       []string `json:"fallback,omitempty"`
	Skills         []string `json:"skills,omitempty"`
	MCPServers     []string `json:"mcp_servers,omitempty"`
	OutputSchema   string   `json:"output_schema,omitempty"`
	Pool           string   `json:"pool,omitempty"`
	Export         bool     `json:"export,omitempty"`
	Notes          []remark `json:"notes"`
}

func (a *agentCommands) describeAgent(r roster, i agentInfo) error {
	doc := agentDoc{agentInfo: i, Notes: []remark{}}
	if d := i.def; d != nil {
		doc.PermissionMode, doc.Effort, doc.Temperature = string(d.PermissionMode), d.Effort, d.Temperature
		doc.Tokens, doc.USD, doc.Share = d.Budget.Tokens, d.Budget.USD, d.Budget.Share
		doc.TimeoutMS, doc.Fallback, doc.Skills = d.Timeout.Milliseconds(), d.Fallback, d.Skills
		doc.OutputSchema, doc.Pool, doc.Export = d.OutputSchema, d.Placement.Pool, d.Export
		for _, s := range d.MCPServers {
			doc.MCPServers = append(doc.MCPServers, s.Name)
		}
		doc.Notes = notesOf(r.notes, d.Path)
	}
	if a.console.output != "table" {
		return a.console.printData(doc)
	}
	p := a.console.page()
	turns := "the default"
	if i.MaxTurns > 0 {
		turns = fmt.Sprint(i.MaxTurns)
	}
	p.pairs([2]string{"name", i.Name}, [2]string{"from", i.From}, [2]string{"description", i.Description}, [2]string{"model", cmp.Or(i.Model, "the run's")},
		[2]string{"tools", wordsOr(i.Tools, "all of its parent's")}, [2]string{"not", strings.Join(i.Disallowed, " ")},
		[2]string{"commands", strings.Join(i.Commands, " ")}, [2]string{"delegates to", wordsOr(i.Delegates, "any")},
		[2]string{"turns", turns}, [2]string{"budget", budgetText(doc)}, [2]string{"timeout", orNothing(took(doc.TimeoutMS))},
		[2]string{"fallback", strings.Join(doc.Fallback, ", ")}, [2]string{"permissions", doc.PermissionMode}, [2]string{"effort", doc.Effort},
		[2]string{"skills", strings.Join(doc.Skills, ", ")}, [2]string{"mcp", strings.Join(doc.MCPServers, ", ")},
		[2]string{"answer", schemaText(doc.OutputSchema)}, [2]string{"pool", doc.Pool},
		[2]string{"prompt", fmt.Sprintf("%d bytes: troupe agents prompt %s", i.PromptBytes, i.Name)})
	if len(doc.Notes) > 0 {
		p.head("Notes")
		for _, n := range doc.Notes {
			p.lines = append(p.lines, term.Wrap(term.Line(n.String()), p.width)...)
		}
	}
	return a.console.lines(p.lines)
}

// orNothing returns "" for "-", which stands for a missing text.
func orNothing(text string) string {
	if text == "-" {
		return ""
	}
	return text
}

func budgetText(d agentDoc) string {
	var parts []string
	if d.Tokens > 0 {
		parts = append(parts, term.Tokens(d.Tokens)+" tokens")
	}
	if d.USD > 0 {
		parts = append(parts, fmt.Sprintf("$%g", d.USD))
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

// checked is what validate prints as JSON.
type checked struct {
	Valid    bool     `json:"valid"`
	Agents   int      `json:"agents"`
	Problems []remark `json:"problems"`
	Notes    []remark `json:"notes"`
}

func (a *agentCommands) agentsValidate() *cobra.Command {
	var g agentPlaces
	return g.add(&cobra.Command{
		Use:   "validate [FILE|DIR]...",
		Short: "Check agent files and show all that is wrong, with lines",
		Long: `Check agent files: those that are named, or else all that a run here would find.
Every problem is shown with its file and line and what was probably meant. The exit
code is 2 if there is any; notes alone are no problem.`,
		Example:     "  troupe agents validate\n  troupe agents validate .claude/agents/reviewer.md -o json | jq '.problems'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := g.complete(); err != nil {
				return err
			}
			for _, path := range args {
				if _, err := os.Stat(path); err != nil {
					return usage("name files and directories that are there", "%w", err)
				}
			}
			return a.validateAgents(g, args)
		},
	})
}

func (a *agentCommands) validateAgents(g agentPlaces, places []string) error {
	defs, notes, err := agentfile.Load(places...)
	if len(places) == 0 {
		defs, notes, err = g.load()
	}
	c := checked{Agents: len(defs), Problems: []remark{}, Notes: notesOf(notes, "")}
	for _, p := range agentfile.Problems(err) {
		c.Problems = append(c.Problems, remark{p.Path, p.Line, p.Text()})
	}
	all, err := g.roster()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, i := range all.agents {
		known[i.Name] = true
	}
	for _, d := range defs {
		known[d.Name] = true
	}
	for _, d := range defs {
		problems, notes := meaning(d, known)
		c.Problems, c.Notes = append(c.Problems, problems...), append(c.Notes, notes...)
	}
	c.Valid = len(c.Problems) == 0
	if a.console.output != "table" {
		err = a.console.printData(c)
	} else {
		err = a.console.lines(a.checkedText(c))
	}
	if err != nil || c.Valid {
		return err
	}
	return ended(exitUsage)
}

func (a *agentCommands) checkedText(c checked) []string {
	var lines []string
	for _, p := range c.Problems {
		lines = append(lines, a.console.style.Red("error:")+" "+term.Line(p.String()))
	}
	for _, n := range c.Notes {
		lines = append(lines, a.console.style.Yellow("note:")+" "+term.Line(n.String()))
	}
	return append(lines, fmt.Sprintf("%s, %s, %s", countOf(c.Agents, "agent"), countOf(len(c.Problems), "problem"), countOf(len(c.Notes), "note")))
}

// meaning checks what depends on other agents, or on other packages.
func meaning(d agentfile.Definition, known map[string]bool) (problems, notes []remark) {
	for _, name := range d.Delegates {
		if known[name] {
			continue
		}
		text := fmt.Sprintf("it may call %q, and there is no such agent", name)
		if near := config.Near(name, sorted(known)); near != "" {
			text += "; did you mean " + near + "?"
		}
		notes = append(notes, remark{Path: d.Path, Line: d.Line("x-troupe", "tools", "permission"), Text: text})
	}
	for i, m := range append([]string{d.Model}, d.Fallback...) {
		if _, ok := provider.Meant(m, anthropic.Provider); m == "" || ok {
			continue
		}
		text, key := fmt.Sprintf("model %q is neither PROVIDER/MODEL nor haiku, sonnet or opus; the run's model is taken", m), "model"
		if i > 0 {
			text, key = fmt.Sprintf("x-troupe.fallback: %q is neither PROVIDER/MODEL nor haiku, sonnet or opus; it is left out", m), "x-troupe"
		}
		notes = append(notes, remark{Path: d.Path, Line: d.Line(key), Text: text})
	}
	if d.Policy != "" {
		var p supervisor.Policy
		err := json.Unmarshal([]byte(d.Policy), &p)
		if err == nil {
			err = p.Validate()
		}
		if err != nil {
			problems = append(problems, remark{Path: d.Path, Line: d.Line("x-troupe"), Text: fmt.Sprintf("x-troupe.policy: %v", err)})
		}
	}
	return problems, notes
}

func sorted(set map[string]bool) []string {
	var list []string
	for name := range set {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
