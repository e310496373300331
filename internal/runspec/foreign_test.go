package runspec

import (
	"testing"

	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/toolset"
)

// A low charge in an agent file would get around a limit in money, so the larger of the charges of the file and of the settings
// counts. A charge that only one of them states counts as it is.
func TestAttackAgentFilesDoNotLowerCharges(t *testing.T) {
	t.Parallel()
	const name = "cc/derek/reviewer"
	for what, c := range map[string]struct {
		file, settings map[string]float64
		want           float64
	}{
		"lower in the file":          {map[string]float64{name: 0.01}, map[string]float64{name: 0.5}, 0.5},
		"lower, against a pattern":   {map[string]float64{name: 0.01}, map[string]float64{"*/*": 0.5}, 0.5},
		"a lower pattern":            {map[string]float64{"cc/derek/*": 0.01}, map[string]float64{name: 0.5}, 0.5},
		"higher in the file":         {map[string]float64{name: 0.75}, map[string]float64{name: 0.5}, 0.75},
		"only in the file":           {map[string]float64{name: 0.25}, nil, 0.25},
		"only in the settings":       {nil, map[string]float64{"cc/*": 0.5}, 0.5},
		"of another agent":           {map[string]float64{"cc/derek/other": 0.01}, map[string]float64{name: 0.5}, 0.5},
		"nothing, in the file's own": {map[string]float64{name: 0}, map[string]float64{name: 0.5}, 0.5},
	} {
		cfg := &Config{Charges: c.settings, Tools: &toolset.Builder{}}
		d := agentfile.Definition{Name: "boss", Delegates: []string{name}, Charges: c.file}
		got, delegates, err := coveredDelegates(cfg, agentSet{}, acceptedRequest{}, budget.NanoPerUSD, d)
		if err != nil || len(delegates) != 1 || got.charges[name] != c.want {
			t.Errorf("%s: %v for %v, %v; want %v", what, got.charges[name], delegates, err, c.want)
		}
	}
}
