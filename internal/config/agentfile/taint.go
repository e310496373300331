package agentfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
)

// readTaint takes ask, deny or off.
func readTaint(d *decoder, key string, n *yaml.Node) string {
	text := n.Value
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" && text == "false" {
		text = spec.TaintOff // YAML 1.1 takes off for a boolean
	}
	mode, err := permission.ParseTaint(text)
	if n.Kind != yaml.ScalarNode || err != nil || mode == "" {
		d.rejectValue(n, key, permission.TaintUsage)
		return ""
	}
	return mode
}

// readOwnTaint refuses a value that an agent file cannot set: its own permissions only tighten those of the run.
func readOwnTaint(d *decoder, key string, n *yaml.Node) {
	if d.readPermissions(key, n, &d.def.Permissions); d.def.Permissions.Taint == spec.TaintOff {
		d.addProblem(n.Line+1,
			"%s.taint: an agent file cannot set off, only ask or deny; set it in your own troupe.yaml", key)
	}
}

// readData takes a list of outside, private and sends, or none.
func readData(d *decoder, key string, n *yaml.Node) string {
	data, err := permission.ParseData(strings.Join(d.readList(n, key), ","))
	if err != nil {
		d.rejectValue(n, key, permission.DataUsage)
		return ""
	}
	return data
}

// readTaintedRules takes rules that allow calls which send data out although the agent has read text from outside.
func readTaintedRules(d *decoder, key string, n *yaml.Node, list func(*[]spec.PermissionRule, bool) fieldReader) (rules []spec.PermissionRule) {
	list(&rules, true)(d, key, n)
	for i := range rules {
		rules[i].AllowsTainted = true
	}
	return rules
}
