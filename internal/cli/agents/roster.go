package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/assistant"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/runspec"
)

// Info is one agent that a run can have.
type Info struct {
	Name        string   `json:"name"`
	From        string   `json:"from"` // "built in", or the file
	Description string   `json:"description"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools"` // null: all of its parent's
	Disallowed  []string `json:"disallowed_tools,omitempty"`
	Delegates   []string `json:"delegates"` // null: any
	Handoffs    []string `json:"handoffs,omitempty"`
	MaxTurns    int      `json:"max_turns,omitempty"`
	Commands    []string `json:"commands,omitempty"`
	PromptBytes int      `json:"prompt_bytes"`
	// Hidden names the other agent of the same name that takes precedence unless --agents names the directory.
	Hidden string `json:"hidden_by,omitempty"`
	// Trifecta names the tools of an agent that can read text from outside, read private data and send data out; nil: it
	// cannot do all three.
	Trifecta *runspec.Trifecta `json:"trifecta,omitempty"`

	def *agentfile.Definition // nil: built in
}

const BuiltIn = "built in"

// Roster holds all agents, and the problems of the files.
type Roster struct {
	Agents   []Info
	notes    []agentfile.Note
	Problems []*agentfile.Problem
	flags    string // with which another command reads the same places
}

// ReadRoster reads the agents of the places, in the order in which they count.
func (g *Sources) ReadRoster() (Roster, error) {
	var r Roster
	if err := g.Complete(); err != nil {
		return r, err
	}
	if g.Agents != "" {
		r.flags = " --agents " + session.QuoteForShell(g.Agents)
	}
	defs, notes, err := g.loadFiles()
	r.notes, r.Problems = notes, agentfile.SplitProblems(err)
	for _, b := range investigator.BuiltinAgents() {
		r.Agents = append(r.Agents, Info{Name: b.Name, From: BuiltIn, Description: b.Description, Tools: b.Tools,
			MaxTurns: b.MaxTurns, PromptBytes: len(b.System)})
	}
	r.Agents = append(r.Agents, generalAgents(defs)...)
	for _, d := range defs {
		i := Info{Name: d.Name, From: d.Path, Description: d.Description, Model: d.Model, Tools: toolRefNames(d.Tools), Disallowed: toolRefNames(d.DisallowedTools),
			Delegates: d.Delegates, Handoffs: d.Handoffs, MaxTurns: d.MaxTurns, PromptBytes: len(d.Prompt), def: &d}
		for _, c := range d.Commands {
			i.Commands = append(i.Commands, c.Name)
		}
		// Agents of --agents take precedence over built-in agents; built-in agents over all others.
		k := slices.IndexFunc(r.Agents, func(b Info) bool { return b.Name == d.Name && b.From == BuiltIn })
		switch {
		case k >= 0 && g.Agents != "" && strings.HasPrefix(d.Path, g.Agents+string(os.PathSeparator)):
			r.Agents[k].Hidden = d.Path
		case k >= 0:
			i.Hidden = BuiltIn
		}
		r.Agents = append(r.Agents, i)
	}
	return r, nil
}

// generalAgents are the built-in agents for models that are LLMs. An agent of any file takes the place of the explorer.
func generalAgents(defs []agentfile.Definition) []Info {
	list := []Info{{Name: assistant.Name, From: BuiltIn, Description: assistant.Description, Tools: []string{"*"}, PromptBytes: len(assistant.Prompt(assistant.Later))}}
	if !slices.ContainsFunc(defs, func(d agentfile.Definition) bool { return d.Name == assistant.ExplorerName }) {
		list = append(list, Info{Name: assistant.ExplorerName, From: BuiltIn, Description: assistant.ExplorerDescription, Tools: assistant.ExplorerTools(),
			Delegates: []string{}, MaxTurns: assistant.ExplorerTurns, PromptBytes: len(assistant.ExplorerPrompt)})
	}
	return list
}

func toolRefNames(refs []agentfile.ToolRef) []string {
	if refs == nil {
		return nil
	}
	list := make([]string, len(refs))
	for i, r := range refs {
		if list[i] = r.Name; r.Args != "" {
			list[i] += "(" + r.Args + ")"
		}
	}
	return list
}

// lookup is the agent of a name that counts.
func (r Roster) lookup(name string) (Info, error) {
	var known []string
	for _, i := range r.Agents {
		if i.Name == name && i.Hidden == "" {
			return i, nil
		}
		known = append(known, i.Name)
	}
	for _, p := range r.Problems {
		if filepath.Base(p.Path) == name+".md" {
			return Info{}, exit.UsageError("troupe agents validate shows all that is wrong", "%s", console.Remark{Path: p.Path, Line: p.Line, Text: p.Text()})
		}
	}
	hint := "troupe agents list shows them"
	if near := config.NearestName(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return Info{}, exit.UsageError(hint, "there is no agent %q", name)
}
