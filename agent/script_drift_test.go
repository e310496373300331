package agent_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/troupe-run/troupe/agent"
)

// versions are the hashes that a line names: hashes=(prompt:1a2b, tool/look:read:9f).
func versions(d *datadriven.TestData, key string) map[string]string {
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

// handleResumed is a start: found=(prompt:3c4d, tool/look:) is what the node has
// otherwise, same that it has looked and differs in nothing.
func handleResumed(t *testing.T, d *datadriven.TestData) agent.Resumed {
	t.Helper()
	return agent.Resumed{Life: first(d), Node: value(t, d, "node"), Damaged: d.Input,
		Found: versions(d, "found"), Looked: d.HasArg("found") || d.HasArg("same")}
}
