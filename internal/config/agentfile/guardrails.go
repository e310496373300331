package agentfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/guardrail"
)

// readGuardrails reads ready guardrails: [secrets, injection:end, {guardrail: size, bytes: 100000}].
func (d *decoder) readGuardrails(key string, n *yaml.Node) (list []spec.ReadyGuardrail) {
	items := n.Content
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	} else if n.Kind != yaml.SequenceNode {
		d.rejectValue(n, key, "a list of guardrails, such as [secrets, {guardrail: injection, action: end}]")
		return nil
	}
	for _, item := range items {
		before := len(d.problems)
		g, ok := d.readGuardrail(key, item)
		if !ok || len(d.problems) > before {
			continue
		}
		if _, err := guardrail.Hooks(append(list, g)); err != nil {
			d.addProblem(item.Line+1, "%s: %v", key, err)
			continue
		}
		list = append(list, g)
	}
	return list
}

func (d *decoder) readGuardrail(key string, n *yaml.Node) (g spec.ReadyGuardrail, ok bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		return guardrail.Parse(d.readText(n, key)), true
	case yaml.MappingNode:
	default:
		d.rejectValue(n, key, "a name, such as secrets, or a mapping, such as {guardrail: injection, action: end}")
		return g, false
	}
	d.readFields(n, key+".", map[string]fieldReader{
		"guardrail": func(d *decoder, k string, n *yaml.Node) { g.Name = d.readText(n, k) },
		"action":    func(d *decoder, k string, n *yaml.Node) { g.Action = d.readText(n, k) },
		"severity":  func(d *decoder, k string, n *yaml.Node) { g.Severity = spec.Severity(d.readText(n, k)) },
		"tools":     func(d *decoder, k string, n *yaml.Node) { g.Tools = ourTools(d.readText(n, k)) },
		"label":     func(d *decoder, k string, n *yaml.Node) { g.Label = d.readText(n, k) },
		"pattern":   func(d *decoder, k string, n *yaml.Node) { g.Pattern = d.readText(n, k) },
		"bytes": func(d *decoder, k string, n *yaml.Node) {
			g.Bytes = d.readInteger(n, k, "a number of bytes, such as 100000")
		},
		"at": func(d *decoder, k string, n *yaml.Node) {
			for _, p := range d.readList(n, k) {
				g.At = append(g.At, spec.HookPoint(strings.TrimSpace(p)))
			}
		},
	})
	return g, true
}

// readOwnGuardrails reads the guardrails of an agent file: hooks of that agent.
func readOwnGuardrails(d *decoder, key string, n *yaml.Node) {
	hooks, err := guardrail.Hooks(d.readGuardrails(key, n))
	if err != nil {
		d.addProblem(n.Line+1, "%s: %v", key, err)
	}
	for _, h := range hooks {
		d.addHook(n, key, h)
	}
}
