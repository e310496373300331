package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// An answer whose check would take minutes if each branch were tried separately is judged
// immediately: the model is told why, and the run ends without a valid answer.
//
//behaviour:shows H4
func TestAttackAnswerIsCheckedInBoundedTime(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	branch := `{"type":"object","required":["x"],"properties":{"a":{"$ref":"#/$defs/n"}}}`
	schema := `{"type":"object","$defs":{"n":{"anyOf":[` + strings.Repeat(branch+",", 7) + branch + `]}},"properties":{"a":{"$ref":"#/$defs/n"}}}`
	answer := strings.Repeat(`{"a":`, 1500) + "1" + strings.Repeat("}", 1500)
	texts := fmt.Sprintf("    - text: %q\n", answer)
	dir := t.TempDir()
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{dir} })
	c := connectClient(t, h)
	began := time.Now()
	id := beginRun(t, c, client.RunRequest{Dir: dir, Model: writeScript(t, "agents:\n  assistant:\n"+strings.Repeat(texts, 4)), JSONSchema: json.RawMessage(schema)})
	info := waitFinished(t, c, id, spec.EvidenceMissing)
	if took := time.Since(began); took > patience/2 || !strings.Contains(info.Result.Detail, "did not validate") {
		t.Errorf("after %s: %s", took, info.Result.Detail)
	}
	past, err := c.Transcript(testContext(t), id, string(spec.Root))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := json.Marshal(past); err != nil || !strings.Contains(string(raw), "did not validate against any of") {
		t.Errorf("the model was not told: %v", err)
	}
}
