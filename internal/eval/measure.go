package eval

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
)

// Verdict is the outcome of one case.
type Verdict struct {
	Case        string      `json:"case_id"`
	File        string      `json:"file"` // file:line
	About       string      `json:"about,omitempty"`
	Pass        bool        `json:"pass"`
	Differences []string    `json:"differences,omitempty"`
	StopReason  spec.Reason `json:"stop_reason"`
	Expected    spec.Reason `json:"expected_stop_reason"`
	Parked      bool        `json:"parked,omitempty"`
	Turns       int         `json:"num_turns"`
	ToolRuns    int         `json:"tool_runs"`
	Proposals   int         `json:"proposals"`
	Invalid     int         `json:"invalid_proposals"`
	Repeated    int         `json:"repeated_proposals"`
	Tokens      int64       `json:"tokens"`
	CostUSD     float64     `json:"cost_usd"`
	CostKnown   bool        `json:"cost_known"`
	LatencyMS   int64       `json:"latency_ms"`
	Replayed    bool        `json:"replayed"`
	// AsRecorded is whether the case ended as the run did that it was made of; nil: it was made of none.
	// Unlike lists the differences.
	AsRecorded *bool    `json:"as_recorded,omitempty"`
	Unlike     []string `json:"unlike_recorded,omitempty"`
}

// Rate is how many of how many.
type Rate struct {
	Hits int `json:"hits"`
	Of   int `json:"of"`
}

func (r *Rate) add(hit bool) {
	r.Of++
	if hit {
		r.Hits++
	}
}

// Percent is the rate, or 0 of nothing.
func (r Rate) Percent() float64 {
	if r.Of == 0 {
		return 0
	}
	return 100 * float64(r.Hits) / float64(r.Of)
}

// Report is the outcome of all cases.
type Report struct {
	Pass       bool      `json:"pass"`
	Cases      Rate      `json:"cases"`          // that pass
	Completion Rate      `json:"completion"`     // that completed, of those that should
	StopReason Rate      `json:"stop_reason"`    // that ended for the expected reason
	Invalid    Rate      `json:"invalid"`        // proposals that were not valid: forbidden, unknown, wrong arguments
	Repeated   Rate      `json:"repeated"`       // proposals that repeat an earlier one of the same agent
	Escalation Rate      `json:"escalation"`     // that turned to people, or did not, as expected
	Replay     Rate      `json:"replay"`         // whose logs replay to the same end
	Tokens     int64     `json:"tokens"`         // of all cases
	ToolRuns   int       `json:"tool_runs"`      // of mocked tools, retries included
	CostUSD    float64   `json:"cost_usd"`       // of the cases with a price
	P50MS      int64     `json:"latency_p50_ms"` // of one case
	MaxMS      int64     `json:"latency_max_ms"`
	TookMS     int64     `json:"took_ms"` // of the whole
	Verdicts   []Verdict `json:"verdicts"`
}

// buildReport makes the report of all verdicts.
func buildReport(verdicts []Verdict, took time.Duration) Report {
	r := Report{Verdicts: verdicts, TookMS: took.Milliseconds()}
	var latencies []int64
	for _, v := range verdicts {
		r.Cases.add(v.Pass)
		if v.Expected == spec.Completed {
			r.Completion.add(v.StopReason == spec.Completed)
		}
		r.StopReason.add(v.StopReason == v.Expected)
		r.Invalid.Hits += v.Invalid
		r.Invalid.Of += v.Proposals
		r.Repeated.Hits += v.Repeated
		r.Repeated.Of += v.Proposals
		r.Escalation.add(slices.Contains(escalations, v.StopReason) == slices.Contains(escalations, v.Expected))
		r.Replay.add(v.Replayed)
		r.Tokens += v.Tokens
		r.ToolRuns += v.ToolRuns
		r.CostUSD += v.CostUSD
		latencies = append(latencies, v.LatencyMS)
	}
	r.Pass = r.Cases.Hits == r.Cases.Of
	if slices.Sort(latencies); len(latencies) > 0 {
		r.P50MS, r.MaxMS = latencies[(len(latencies)-1)/2], latencies[len(latencies)-1]
	}
	return r
}

// countProposals fills in the counts of proposals from the trace.
func (v *Verdict) countProposals(r caseRecord) {
	seen, valid := map[string]bool{}, map[string]bool{}
	for _, e := range r.events {
		d, ok := e.Data.(event.ToolCall)
		if !ok {
			continue
		}
		call := e.Agent + " " + d.Call
		switch e.Kind {
		case event.KindToolProposed:
			v.Proposals++
			if key := e.Agent + " " + d.Tool + " " + canonicalArgs(d.Args); seen[key] {
				v.Repeated++
			} else {
				seen[key] = true
			}
		case event.KindToolValidated:
			valid[call] = true
		case event.KindToolFinished, event.KindDelegationFinished:
			// A call that did not run for a reason outside the call is not invalid.
			if !valid[call] && d.Error && !strings.HasPrefix(d.Text, "not run") && !strings.HasPrefix(d.Text, "never started") {
				v.Invalid++
			}
		}
	}
}

// canonicalArgs are arguments whose keys are in order.
func canonicalArgs(args string) string {
	var v any
	if json.Unmarshal([]byte(args), &v) != nil {
		return args
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return string(raw)
}
