package rulefiles

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/toolset"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// testDoc is what test prints as JSON.
type testDoc struct {
	Agent     string `json:"agent"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	// Decision is allow, allow_confined (it runs where the sandbox confines it, and is asked about elsewhere), ask or
	// deny.
	Decision string `json:"decision"`
	By       string `json:"by,omitempty"`
	Why      string `json:"why,omitempty"`
	Rule     string `json:"rule,omitempty"` // that decides
	From     string `json:"from,omitempty"`
	Offered  bool   `json:"offered"` // the agent has the tool
	// Refused says why the tool itself refuses the call, whatever the rules decide.
	Refused string `json:"refused,omitempty"`
	Rules   []rule `json:"rules"` // that are about the tool
}

var decisions = map[permission.Decision]string{permission.Allow: "allow", permission.AllowConfined: "allow_confined", permission.Ask: "ask", permission.Deny: "deny"}

func (cs *Commands) test() *cobra.Command {
	var g agents.Sources
	var agent string
	c := g.AddFlags(&cobra.Command{
		Use: "test TOOL ARGUMENTS", Args: takes(command.Exactly("TOOL", "ARGUMENTS")),
		Short: "Say what the permission rules decide about a call, and which rule decides",
		Long: `Say what the permission rules of a new run in a directory decide about a call: allow,
ask or deny, which rule decides, and which rules are about the tool. Nothing is called.
It also says if the tool itself refuses the call: for its arguments, a path outside of the
directory, or an agent that does not exist. It looks at no file.

ARGUMENTS is a JSON object with the arguments of the call, or the text that rules of
the tool are about: a command, a path, a URL, an agent, a skill.

The exit code is 0 for every decision, and 2 if no tool has the name, or if the rules or
the arguments cannot be used.

For a run whose id is "test", write: troupe permissions -- test`,
		Example: `  troupe permissions test Bash 'git push origin main'
  troupe permissions test --agent reviewer write_file docs/a.md
  troupe permissions test mcp__github__get_issue '{"number": 7}' -o json`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			o, p, err := cs.rulesOf(&g, agent)
			if err != nil {
				return err
			}
			doc, err := testCall(o, p, args[0], args[1])
			if err != nil {
				return err
			}
			return cs.printTest(doc)
		},
	})
	c.Flags().StringVar(&agent, "agent", "", "agent that makes the call, as the root of a run (default: the one that runs without --agent)")
	return c
}

// testCall decides about a call of the root of a run that was not opened.
func testCall(o supervisor.Opened, p spec.Permissions, tool, arguments string) (testDoc, error) {
	name := agentfile.ToolName(tool)
	if err := checkToolName(o, tool, name); err != nil {
		return testDoc{}, err
	}
	args, err := parseArguments(name, arguments)
	if err != nil {
		return testDoc{}, err
	}
	t, offered := offeredTool(o, name)
	c := permission.Call{Tool: name, Args: args}
	v := permission.Compile([]spec.Permissions{p}, o.Workspace, o.Writable).Decide(c, t, nil)
	doc := testDoc{Agent: o.Root, Tool: name, Arguments: args, Decision: decisions[v.Decision], By: v.By, Why: v.Why, Rule: v.Rule.Text, From: v.Rule.From, Offered: offered, Rules: []rule{}}
	if offered {
		doc.Refused = findRefusal(o, name, args, isJSON(arguments))
	}
	for _, r := range rulesIn(p) {
		parsed, err := permission.Parse(r.Rule)
		if err != nil || !permission.IsAbout(parsed.Tool(), name) {
			continue
		}
		matches := matchesCall(r, c, o.Workspace, t)
		r.Matches = &matches
		doc.Rules = append(doc.Rules, r)
	}
	return doc, nil
}

// checkToolName refuses a name that no tool has: the rules would decide about it, and no call is ever meant. Tools of MCP
// servers are not known, because no server is started here, and those of other programs may stand in rules.
func checkToolName(o supervisor.Opened, typed, name string) error {
	isTool := func(s model.ToolSpec) bool { return s.Name == name }
	isCommand := func(c spec.Command) bool { return c.Name == name }
	if slices.ContainsFunc(o.Tools, isTool) || slices.ContainsFunc(o.Commands, isCommand) || agentfile.IsBuiltin(name) || agentfile.IsForeign(name) || mcpclient.IsToolName(name) {
		return nil
	}
	similar := agentfile.SuggestTool(typed)
	if near := config.NearestName(name, toolset.ToolNames(o.Tools)); similar == "" && near != "" {
		similar = "; did you mean " + near + "?"
	}
	return exit.UsageError("`troupe tools list` shows the tools", "no tool is called %.80q%s", typed, similar)
}

// offeredTool returns what the rules need to know of a tool, and whether the root of a run is offered it.
func offeredTool(o supervisor.Opened, name string) (t permission.Tool, offered bool) {
	t.Class = model.Effect // unknown tools may do all
	if i := slices.IndexFunc(o.Tools, func(s model.ToolSpec) bool { return s.Name == name }); i >= 0 {
		t.Class, offered = o.Tools[i].Class, true
	}
	t.Command = slices.ContainsFunc(o.Commands, func(c spec.Command) bool { return c.Name == name })
	for _, d := range o.Definitions {
		if d.Name == o.Root {
			offered = offered && (d.Tools == nil || slices.Contains(d.Tools, name)) && !slices.Contains(d.Deny, name) && (d.Offer == nil || slices.Contains(d.Offer, name))
		}
	}
	return t, offered
}

// matchesCall reports whether a rule by itself decides about a call as its list says.
func matchesCall(r rule, c permission.Call, workspace string, t permission.Tool) bool {
	p := spec.Permissions{Mode: spec.ModeBypass}
	want := permission.Deny
	switch r.List {
	case "deny":
		p.Deny = []spec.PermissionRule{r.source}
	case "ask":
		p.Ask, want = []spec.PermissionRule{r.source}, permission.Ask
	case "allow":
		p.Allow, p.Mode, want = []spec.PermissionRule{{Text: r.source.Text}}, spec.ModeDefault, permission.Allow
	default:
		p.Only = []spec.PermissionRule{r.source}
		return permission.Compile([]spec.Permissions{p}, workspace, nil).Decide(c, t, nil).Decision != permission.Deny
	}
	v := permission.Compile([]spec.Permissions{p}, workspace, nil).Decide(c, t, nil)
	return v.Decision == want && v.By == permission.ByRule
}

// mainArguments name the argument that rules of a tool are about.
var mainArguments = map[string]string{"shell": "command", "http_get": "url", "delegate": "agent", "handoff": "agent", "skill": "name"}

// isJSON reports whether arguments are an object, and not the text that rules of the tool are about.
func isJSON(arguments string) bool { return strings.HasPrefix(strings.TrimSpace(arguments), "{") }

// parseArguments returns the arguments of a call as JSON.
func parseArguments(tool, text string) (string, error) {
	if isJSON(text) {
		if !json.Valid([]byte(text)) {
			return "", exit.UsageError(`write them as '{"path": "docs/a.md"}'`, "the arguments are not a JSON object: %.80s", text)
		}
		return permission.Canonical(text), nil
	}
	key := mainArguments[tool]
	if slices.Contains(permission.WriteTools, tool) || slices.Contains(permission.ReadTools, tool) {
		key = "path"
	}
	switch {
	case key == "" && strings.TrimSpace(text) == "":
		return "{}", nil
	case key == "":
		return "", exit.UsageError(`write them as '{"key": "value"}'; {} is none`, "arguments of %s must be a JSON object", tool)
	}
	raw, err := json.Marshal(map[string]string{key: text})
	return string(raw), err
}

func (cs *Commands) printTest(doc testDoc) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(doc)
	}
	p := cs.newPage()
	text := doc.Decision
	if doc.Decision == "allow_confined" {
		text = "allow where the sandbox confines the command, ask elsewhere"
	}
	why := doc.Why
	if why == "" {
		why = "no rule is about it, and such calls run in this mode"
	}
	if doc.Refused != "" && doc.Decision != "deny" {
		verb := "allow it"
		if doc.Decision == "ask" {
			verb = "ask about it"
		}
		p.AddLine(term.CleanLine("refused: the rules " + verb + "; the tool refuses: " + doc.Refused))
	} else {
		p.AddLine(term.CleanLine(text + ": " + why))
	}
	if !doc.Offered {
		p.AddLine(term.CleanLine("the agent " + doc.Agent + " is not offered " + doc.Tool + ": no call of it can begin"))
	}
	if len(doc.Rules) > 0 {
		p.Lines = append(p.Lines, "")
		var rows [][]string
		for _, r := range doc.Rules {
			matches := "no"
			if *r.Matches {
				matches = "yes"
			}
			rows = append(rows, []string{r.List, term.CleanLine(r.Rule), matches, term.CleanLine(r.From)})
		}
		p.AddTable(console.Left("LIST", "RULE", "MATCHES", "FROM"), rows)
	}
	return cs.Console.PrintLines(p.Lines)
}
