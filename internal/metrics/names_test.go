package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
)

var metricName = regexp.MustCompile(`\b(?:troupe|gen_ai)_[a-z_]+\b`)

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The page of metrics has each, and the rules and the dashboard use no other.
func TestPageRulesAndDashboardUseTheMetricsThatExist(t *testing.T) {
	page, known := readFile(t, "..", "..", "docs", "metrics.md"), map[string]bool{}
	for _, name := range metricName.FindAllString(readFile(t, "names.go"), -1) {
		known[name] = true
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/metrics.md lacks %s", name)
		}
	}
	for _, file := range []string{"../../deploy/prometheus/alerts.yml", "../../deploy/prometheus/alerts_test.yml", "../../deploy/grafana/troupe.json"} {
		for _, name := range metricName.FindAllString(readFile(t, file), -1) {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if !known[name] && !known[base] {
				t.Errorf("%s uses %s, which is no metric", file, name)
			}
		}
	}
}

// Names that come from models and files are bounded: a hostile one takes no memory and splits no line.
func TestAttackLabelsAreBounded(t *testing.T) {
	r := New(Config{Read: func() Gauges { return Gauges{} }})
	for i := range 5 * valuesMax {
		name := strings.Repeat("x", i) + "\xff\n\"}"
		r.Observe(event.Published{Kind: event.KindToolFinished, Data: event.ToolCall{Tool: name}})
	}
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != toolCalls {
			continue
		}
		if n := len(f.GetMetric()); n > valuesMax+1 {
			t.Errorf("%d values", n)
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if len(l.GetValue()) > valueBytesMax {
					t.Errorf("a value of %d bytes", len(l.GetValue()))
				}
			}
		}
	}
}
