package agentfile

import (
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// readPolicy reads the setting `policy`: the rules, as JSON text, or the file that has them.
func (d *decoder) readPolicy(n *yaml.Node, key string) (text, file string) {
	if n.Kind == yaml.ScalarNode {
		return "", d.readText(n, key)
	}
	return d.readPolicyText(n, key), ""
}

// readPolicyText reads rules as JSON text: package policy reads that.
func (d *decoder) readPolicyText(n *yaml.Node, key string) string {
	if n.Kind != yaml.MappingNode && n.Kind != yaml.SequenceNode {
		d.rejectValue(n, key, "a list of rules, or a mapping with the key rules")
		return ""
	}
	text, err := json.Marshal(d.readAny(n, key))
	if err != nil {
		d.rejectValue(n, key, "a list of rules, or a mapping with the key rules")
		return ""
	}
	return string(text)
}
