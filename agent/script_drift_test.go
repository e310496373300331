package agent_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
)

// parseVersions are the hashes that a line names: hashes=(prompt:1a2b, tool/look:read:9f).
func parseVersions(d *datadriven.TestData, key string) map[string]string {
	arg, ok := d.Arg(key)
	if !ok {
		return nil
	}
	m := map[string]string{}
	for _, v := range arg.Vals {
		what, hash, _ := strings.Cut(v, ":")
		m[what] = hash
	}
	return m
}

// parseResumed is a start: found=(prompt:3c4d, tool/look:) is what the node has
// otherwise, same that it has looked and differs in nothing.
func parseResumed(t *testing.T, d *datadriven.TestData) agent.Resumed {
	t.Helper()
	return agent.Resumed{Activation: firstArgument(d), Node: argumentValue(t, d, "node"), Damaged: d.Input,
		Found: parseVersions(d, "found"), Looked: d.HasArg("found") || d.HasArg("same")}
}
