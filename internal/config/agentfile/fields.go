package agentfile

import (
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// ownKey is the key that holds all keys that are troupe's alone.
const ownKey = "x-troupe"

// topFields are the keys of the front matter: those of Claude Code, and those of OpenCode
// with the same meaning.
var topFields map[string]field

// keptKeys are keys of other tools that have no meaning here: of Claude Code, of OpenCode,
// of Copilot, and those that catalogues of agents use themselves.
var keptKeys = []string{"memory", "background", "isolation", "color", "initialPrompt", "mode", "hidden", "top_p", "options", "variant",
	"target", "argument-hint", "handoffs", "infer", "user-invocable", "disable-model-invocation", "license", "metadata", "version", "author",
	"id", "type", "category", "tags", "emoji", "vibe"}

var ownFields, budgetFields, placementFields map[string]field

func init() { // the readers refer to the tables
	topFields = map[string]field{
		"name":        func(d *decoder, k string, n *yaml.Node) { d.def.Name = d.text(n, k) },
		"description": func(d *decoder, k string, n *yaml.Node) { d.def.Description = d.text(n, k) },
		"tools":       readTools,
		"disallowedTools": func(d *decoder, k string, n *yaml.Node) {
			d.def.DisallowedTools = append(d.def.DisallowedTools, refs(d.list(n, k))...)
		},
		"model":          readModel,
		"permissionMode": readMode,
		"maxTurns":       readTurns,
		"maxSteps":       readTurns,
		"steps":          readTurns,
		"skills":         func(d *decoder, k string, n *yaml.Node) { d.def.Skills = d.list(n, k) },
		"mcpServers":     readServers,
		"effort":         func(d *decoder, k string, n *yaml.Node) { d.def.Effort = strings.ToLower(d.text(n, k)) },
		"temperature":    readTemperature,
		"hooks":          readHooks,
		"permission":     readPermission,
		"disable":        func(d *decoder, k string, n *yaml.Node) { d.def.Disabled = d.boolean(n, k) },
		// All keys below it are troupe's own, so an unknown key there is a mistake.
		ownKey: func(d *decoder, k string, n *yaml.Node) { d.fields(n, k+".", ownFields) },
	}
	for _, key := range keptKeys {
		topFields[key] = keep
	}
	ownFields = map[string]field{
		"budget":        func(d *decoder, k string, n *yaml.Node) { d.fields(n, k+".", budgetFields) },
		"delegates":     func(d *decoder, k string, n *yaml.Node) { d.def.Delegates = d.list(n, k) },
		"timeout":       func(d *decoder, k string, n *yaml.Node) { d.def.Timeout = d.duration(n, k) },
		"fallback":      func(d *decoder, k string, n *yaml.Node) { d.def.Fallback = d.list(n, k) },
		"temperature":   readTemperature,
		"placement":     func(d *decoder, k string, n *yaml.Node) { d.fields(n, k+".", placementFields) },
		"output_schema": readSchema,
		"export":        readExport,
		"policy":        func(d *decoder, k string, n *yaml.Node) { d.def.Policy = d.json(n, k) },
		"tools":         readCommands,
		"hooks":         readOwnHooks,
	}
	maps.Copy(ownFields, mannerFields())
	budgetFields = map[string]field{
		"tokens": func(d *decoder, k string, n *yaml.Node) {
			d.def.Budget.Tokens = d.integer(n, k, "a number of tokens, such as 12000")
		},
		"usd": func(d *decoder, k string, n *yaml.Node) {
			d.def.Budget.USD = d.number(n, k, 0, 1e9, "an amount, such as 0.5")
		},
		"share": func(d *decoder, k string, n *yaml.Node) {
			d.def.Budget.Share = d.number(n, k, 0, 1, "a part of the run's budget between 0 and 1, such as 0.2")
		},
	}
	placementFields = map[string]field{
		"pool": func(d *decoder, k string, n *yaml.Node) { d.def.Placement.Pool = d.text(n, k) },
	}
}

// keep stores a value that has no effect here.
func keep(d *decoder, key string, n *yaml.Node) {
	if d.def.Other == nil {
		d.def.Other = map[string]any{}
	}
	d.def.Other[key] = d.anything(n, key)
}

func readModel(d *decoder, key string, n *yaml.Node) {
	if d.def.Model = d.text(n, key); d.def.Model == "inherit" {
		d.def.Model = ""
	}
}

func readMode(d *decoder, key string, n *yaml.Node) {
	name := d.text(n, key)
	mode, ok := modes[strings.ToLower(name)]
	if !ok && name != "" {
		d.wrong(n, key, "default, acceptEdits, dontAsk, plan or bypassPermissions")
	}
	d.def.PermissionMode = mode
}

func readTurns(d *decoder, key string, n *yaml.Node) {
	d.def.MaxTurns = int(min(d.integer(n, key, "a number of turns, such as 12"), 1<<30))
}

func readTemperature(d *decoder, key string, n *yaml.Node) {
	v := d.number(n, key, 0, 2, "a number between 0 and 2, such as 0.2")
	d.def.Temperature = &v
}

// readServers takes names and definitions: [a, {b: {command: …}}] or {b: {…}}.
func readServers(d *decoder, key string, n *yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		for _, name := range d.list(n, key) {
			d.def.MCPServers = append(d.def.MCPServers, MCPServer{Name: name})
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			s := MCPServer{Name: n.Content[i].Value}
			if v := n.Content[i+1]; v.Tag != "!!null" {
				config, ok := d.anything(v, key).(map[string]any)
				if !ok {
					d.wrong(v, key+"."+s.Name, "a mapping, such as {command: npx, args: [server]}")
					continue
				}
				s.Config = config
			}
			d.def.MCPServers = append(d.def.MCPServers, s)
		}
	default:
		for _, c := range n.Content {
			if c.Kind == yaml.SequenceNode {
				d.wrong(c, key, "a name or a mapping")
				continue
			}
			readServers(d, key, c)
		}
	}
}

// readSchema reads the path of a schema, or the schema.
func readSchema(d *decoder, key string, n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		d.def.OutputSchema = d.json(n, key)
		return
	}
	if key == schemaKey {
		d.lines[key] = n.Line + 1
	}
	d.def.OutputSchema = d.text(n, key)
}

// schemaKey is the key that holds the schema of an agent's answers.
const schemaKey = ownKey + ".output_schema"

// readExport reads true, or a mapping: any true value in the mapping exports the agent.
func readExport(d *decoder, key string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.def.Export = d.boolean(n, key)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if d.boolean(n.Content[i+1], key+"."+n.Content[i].Value) {
			d.def.Export = true
		}
	}
}

// readCommands reads tools that are shell commands, and refuses here what
// tool.Command would refuse when the agent starts.
func readCommands(d *decoder, key string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		d.wrong(n, key, "a list of tools, such as [{name: test, command: make test}]")
		return
	}
	for _, c := range n.Content {
		var cfg tool.CommandConfig
		before := len(d.problems)
		d.fields(c, key+".", map[string]field{
			"name":         func(d *decoder, k string, n *yaml.Node) { cfg.Name = d.text(n, k) },
			"description":  func(d *decoder, k string, n *yaml.Node) { cfg.Description = d.text(n, k) },
			"command":      func(d *decoder, k string, n *yaml.Node) { cfg.Command = d.text(n, k) },
			"effect":       func(d *decoder, k string, n *yaml.Node) { cfg.Class = model.Class(d.text(n, k)) },
			"input_schema": func(d *decoder, k string, n *yaml.Node) { cfg.Schema = d.json(n, k) },
			"poll":         func(d *decoder, k string, n *yaml.Node) { cfg.Poll = d.boolean(n, k) },
			"timeout":      func(d *decoder, k string, n *yaml.Node) { cfg.Timeout = d.duration(n, k) },
		})
		if len(d.problems) > before {
			continue
		}
		if _, err := tool.Command(cfg); err != nil {
			d.problem(c.Line+1, "%s: %s", key, strings.TrimPrefix(err.Error(), "tool: "))
			continue
		}
		d.def.Commands = append(d.def.Commands, cfg)
	}
}
