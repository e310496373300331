package serve

import (
	"strings"
	"testing"
)

// TestCommandOfExportedAgentsHasTheCredential: what a node prints works as it is pasted. For a server of somebody else it
// has no credential to show.
func TestCommandOfExportedAgentsHasTheCredential(t *testing.T) {
	subjects := []string{"agents.prompt.troupe.ops.assistant", "agents.prompt.troupe.ops.surveyor"}
	line := agentsLine(subjects, "nats://127.0.0.1:4222", "/home/me/my state/node.json")
	for _, want := range []string{
		"agents at " + strings.Join(subjects, " ") + "; try: NATS_URL=nats://127.0.0.1:4222 NATS_USER=client ",
		`NATS_PASSWORD="$(jq -r .password '/home/me/my state/node.json')" nats --inbox-prefix _INBOX_client req `,
		" agents.prompt.troupe.ops.assistant 'Say hello'",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %q", want, line)
		}
	}
	if line := agentsLine(subjects, "nats://cluster:4222", ""); strings.Contains(line, "PASSWORD") || !strings.Contains(line, "try: nats req ") {
		t.Error(line)
	}
	if line := agentsLine(nil, "nats://127.0.0.1:4222", ""); line != "" {
		t.Error(line)
	}
}
