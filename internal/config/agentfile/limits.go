package agentfile

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/namedlimit"
)

// readLimits takes limits by their names, such as {max_output_tokens: 16000, max_cuts: 5}.
func readLimits(d *decoder, key string, n *yaml.Node) {
	known := map[string]fieldReader{}
	for _, limit := range namedlimit.All() {
		known[limit.Key] = func(d *decoder, k string, n *yaml.Node) {
			v := int64(d.readNumber(n, k, float64(limit.Least), float64(limit.Most), fmt.Sprintf("a whole number from %d to %d", limit.Least, limit.Most)))
			limit.Set(&d.def.Limits, v)
		}
	}
	d.readFields(n, key+".", known)
}

// readPatience reads off, or how long an agent waits for a model that throttles all callers.
func readPatience(d *decoder, key string, n *yaml.Node) {
	if isOff(n) {
		d.def.LoopOptions.PatienceMS = spec.Off
		return
	}
	d.def.LoopOptions.PatienceMS = d.readDuration(n, key).Milliseconds()
}

// readLimitNotes reads off, or {near: 75, last: 90}: missing keys keep their defaults.
func readLimitNotes(d *decoder, key string, n *yaml.Node) {
	notes := &d.def.LoopOptions.LimitNotes
	if isOff(n) {
		notes.Near = spec.Off
		return
	}
	*notes = spec.DefaultLoopOptions().LimitNotes
	percent := func(into *int) fieldReader {
		return func(d *decoder, k string, n *yaml.Node) {
			*into = int(d.readNumber(n, k, 1, 100, "a percentage of the limit that is used, such as 75"))
		}
	}
	d.readFields(n, key+".", map[string]fieldReader{"near": percent(&notes.Near), "last": percent(&notes.Last)})
}
