package agentfile

import (
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/internal/agentmemory"
	"github.com/troupe-run/troupe/internal/amount"
	"github.com/troupe-run/troupe/internal/toolset/command"
	"github.com/troupe-run/troupe/model"
)

// ownKey is the key that holds all keys that are troupe's alone.
const ownKey = "x-troupe"

// topFields are the keys of the front matter: those of Claude Code, and those of OpenCode
// with the same meaning.
var topFields map[string]fieldReader

// keptKeys are keys of other tools that have no meaning here: of Claude Code, of OpenCode,
// of Copilot, and those that catalogues of agents use themselves.
var keptKeys = []string{"background", "isolation", "color", "initialPrompt", "mode", "hidden", "top_p", "options", "variant",
	"target", "argument-hint", "handoffs", "infer", "user-invocable", "disable-model-invocation", "license", "metadata", "version", "author",
	"id", "type", "category", "tags", "emoji", "vibe"}

var ownFields, budgetFields, placementFields map[string]fieldReader

func init() { // the readers refer to the tables
	topFields = map[string]fieldReader{
		"name":            func(d *decoder, k string, n *yaml.Node) { d.def.Name = d.readText(n, k) },
		"description":     func(d *decoder, k string, n *yaml.Node) { d.def.Description = d.readText(n, k) },
		"tools":           readTools,
		"disallowedTools": readDisallowedTools,
		"model":           readModel,
		"permissionMode":  readMode,
		"maxTurns":        readTurns,
		"maxSteps":        readTurns,
		"steps":           readTurns,
		"skills":          func(d *decoder, k string, n *yaml.Node) { d.def.Skills = d.readList(n, k) },
		"memory":          readMemory,
		"mcpServers":      readServers,
		"effort":          func(d *decoder, k string, n *yaml.Node) { d.def.Effort = strings.ToLower(d.readText(n, k)) },
		"temperature":     readTemperature,
		"hooks":           readHooks,
		"permission":      readPermission,
		"disable":         func(d *decoder, k string, n *yaml.Node) { d.def.Disabled = d.readBool(n, k) },
		// All keys below it are troupe's own, so an unknown key there is a mistake.
		ownKey: func(d *decoder, k string, n *yaml.Node) { d.readFields(n, k+".", ownFields) },
	}
	for _, key := range keptKeys {
		topFields[key] = keepValue
	}
	ownFields = map[string]fieldReader{
		"budget":    func(d *decoder, k string, n *yaml.Node) { d.readFields(n, k+".", budgetFields) },
		"delegates": readDelegates,
		"handoffs":  readHandoffs,
		chargesKey:  func(d *decoder, k string, n *yaml.Node) { d.def.Charges = readCharges(d, k, n) },
		"timeout":   func(d *decoder, k string, n *yaml.Node) { d.def.Timeout = d.readDuration(n, k) },
		"question_timeout": func(d *decoder, k string, n *yaml.Node) {
			d.def.LoopOptions.QuestionMS = d.readDuration(n, k).Milliseconds()
		},
		"unattended":    func(d *decoder, k string, n *yaml.Node) { d.def.LoopOptions.Unattended = d.readBool(n, k) },
		"park_timeout":  func(d *decoder, k string, n *yaml.Node) { d.def.ParkTimeout = d.readDuration(n, k) },
		"fallback":      func(d *decoder, k string, n *yaml.Node) { d.def.Fallback = d.readList(n, k) },
		"temperature":   readTemperature,
		"placement":     func(d *decoder, k string, n *yaml.Node) { d.readFields(n, k+".", placementFields) },
		"output_schema": readSchema,
		"export":        readExport,
		"policy":        func(d *decoder, k string, n *yaml.Node) { d.def.Policy = d.readPolicyText(n, k) },
		"tools":         readCommands,
		"hooks":         readOwnHooks,
		"guardrails":    readOwnGuardrails,
		"limits":        readLimits,
		"permissions":   readOwnTaint,
	}
	maps.Copy(ownFields, loopOptionFields())
	maps.Copy(ownFields, sentenceFields())
	budgetFields = map[string]fieldReader{
		"tokens": func(d *decoder, k string, n *yaml.Node) {
			d.def.Budget.Tokens = d.readTokens(n, k)
		},
		"usd": func(d *decoder, k string, n *yaml.Node) {
			d.def.Budget.USD = d.readNumber(withoutDollar(n), k, 0, amount.USDMax, "an amount, such as 0.5 or $2")
		},
		"share": func(d *decoder, k string, n *yaml.Node) {
			d.def.Budget.Share = d.readNumber(n, k, 0, 1, "a part of the run's budget between 0 and 1, such as 0.2")
		},
	}
	placementFields = map[string]fieldReader{
		"pool": func(d *decoder, k string, n *yaml.Node) { d.def.Placement.Pool = d.readText(n, k) },
	}
}

// keepValue stores a value that has no effect here.
func keepValue(d *decoder, key string, n *yaml.Node) {
	if d.def.Other == nil {
		d.def.Other = map[string]any{}
	}
	d.def.Other[key] = d.readAny(n, key)
}

func readModel(d *decoder, key string, n *yaml.Node) {
	if d.def.Model = d.readText(n, key); d.def.Model == "inherit" {
		d.def.Model = ""
	}
}

func readDisallowedTools(d *decoder, key string, n *yaml.Node) {
	for _, item := range append([]*yaml.Node{n}, n.Content...) {
		if item.Kind == yaml.ScalarNode && item.Tag != "!!str" { // it would deny nothing
			d.rejectValue(item, key, `names of tools, such as [Bash, Write]; quote a name that is a number, as in "7"`)
		}
	}
	d.def.DisallowedTools = append(d.def.DisallowedTools, parseToolRefs(d.readList(n, key))...)
}

func readMode(d *decoder, key string, n *yaml.Node) {
	name := d.readText(n, key)
	mode, err := ParseMode(name)
	if err != nil {
		d.rejectValue(n, key, modeWords)
	}
	d.def.PermissionMode = mode
}

// readMemory takes the scopes of Claude Code. Its scope local is a project's whose notes are not in the repository, as
// all notes here. A value of another tool is a note, so that its files load.
func readMemory(d *decoder, _ string, n *yaml.Node) {
	switch scope := n.Value; {
	case n.Kind == yaml.ScalarNode && (scope == agentmemory.User || scope == agentmemory.Project):
		d.def.Memory = scope
	case n.Kind == yaml.ScalarNode && scope == "local":
		d.def.Memory = agentmemory.Project
	default:
		d.addNote(n.Line+1, "memory is not user, project or local: the agent has no memory")
	}
}

func readTurns(d *decoder, key string, n *yaml.Node) {
	d.def.MaxTurns = int(min(d.readInteger(n, key, "a number of turns, such as 12"), 1<<30))
}

func readTemperature(d *decoder, key string, n *yaml.Node) {
	v := d.readNumber(n, key, 0, 2, "a number between 0 and 2, such as 0.2")
	d.def.Temperature = &v
}

// readServers takes names and definitions: [a, {b: {command: …}}] or {b: {…}}.
func readServers(d *decoder, key string, n *yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		for _, name := range d.readList(n, key) {
			d.def.MCPServers = append(d.def.MCPServers, MCPServer{Name: name})
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			s := MCPServer{Name: n.Content[i].Value}
			if v := n.Content[i+1]; v.Tag != "!!null" {
				config, ok := d.readAny(v, key).(map[string]any)
				if !ok {
					d.rejectValue(v, key+"."+s.Name, "a mapping, such as {command: npx, args: [server]}")
					continue
				}
				s.Config = config
			}
			d.def.MCPServers = append(d.def.MCPServers, s)
		}
	default:
		for _, c := range n.Content {
			if c.Kind == yaml.SequenceNode {
				d.rejectValue(c, key, "a name or a mapping")
				continue
			}
			readServers(d, key, c)
		}
	}
}

// readSchema reads the path of a schema, or the schema.
func readSchema(d *decoder, key string, n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		d.def.OutputSchema = d.readJSON(n, key)
		return
	}
	if key == schemaKey {
		d.lines[key] = n.Line + 1
	}
	d.def.OutputSchema = d.readText(n, key)
}

// schemaKey is the key that holds the schema of an agent's answers.
const schemaKey = ownKey + ".output_schema"

// readExport reads true, or a mapping: any true value in the mapping exports the agent.
func readExport(d *decoder, key string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.def.Export = d.readBool(n, key)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if d.readBool(n.Content[i+1], key+"."+n.Content[i].Value) {
			d.def.Export = true
		}
	}
}

// readCommands reads tools that are shell commands, and refuses here what
// command.New would refuse when the agent starts.
func readCommands(d *decoder, key string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		d.rejectValue(n, key, "a list of tools, such as [{name: test, command: make test}]")
		return
	}
	for _, c := range n.Content {
		var cfg command.Config
		before := len(d.problems)
		d.readFields(c, key+".", map[string]fieldReader{
			"name":         func(d *decoder, k string, n *yaml.Node) { cfg.Name = d.readText(n, k) },
			"description":  func(d *decoder, k string, n *yaml.Node) { cfg.Description = d.readText(n, k) },
			"command":      func(d *decoder, k string, n *yaml.Node) { cfg.Command = d.readText(n, k) },
			"effect":       func(d *decoder, k string, n *yaml.Node) { cfg.Class = model.Class(d.readText(n, k)) },
			"input_schema": func(d *decoder, k string, n *yaml.Node) { cfg.Schema = d.readJSON(n, k) },
			"poll":         func(d *decoder, k string, n *yaml.Node) { cfg.Poll = d.readBool(n, k) },
			"timeout":      func(d *decoder, k string, n *yaml.Node) { cfg.Timeout = d.readDuration(n, k) },
		})
		if len(d.problems) > before {
			continue
		}
		if _, err := command.New(cfg); err != nil {
			d.addProblem(c.Line+1, "%s: %s", key, strings.TrimPrefix(err.Error(), "tool: "))
			continue
		}
		d.def.Commands = append(d.def.Commands, cfg)
	}
}
