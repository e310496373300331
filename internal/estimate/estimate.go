// Package estimate estimates the tokens of texts and media that were not counted. Unlike the bounds of package budget an
// estimate may be too low: it shows when a prompt grows large, never what a call may cost.
package estimate

import (
	"github.com/troupe-run/troupe/budget"
	"github.com/troupe-run/troupe/model"
)

const (
	// BytesPerToken divides the bytes of a text that was not counted.
	BytesPerToken = 3
	// MessageTokens is what a message, call, result or tool schema adds to its texts.
	MessageTokens = 4
	// MediaTokens is the estimate of a part that is not text, if its provider's
	// formula is unknown.
	MediaTokens = 250
)

// Text estimates a text that was not counted.
func Text(s string) int64 { return estimateBytes(int64(len(s))) }

func estimateBytes(n int64) int64 { return (n + BytesPerToken - 1) / BytesPerToken }

// Messages estimates what messages add to a prompt: the counted tokens of a message if it
// has any, and the bytes of its texts if it has none, or if the count exceeds what the
// bytes allow.
func Messages(messages ...model.Message) int64 {
	var n int64
	for _, m := range messages {
		n += estimateMessage(m)
	}
	return n
}

func estimateMessage(m model.Message) int64 {
	if m.Tombstone {
		return 0
	}
	texts := int64(len(m.Text))
	for _, c := range m.Calls {
		texts += int64(len(c.Name) + len(c.Args))
	}
	for _, r := range m.Results {
		texts += int64(len(r.Text))
	}
	n := m.Tokens
	if n <= 0 || n > texts {
		n = estimateBytes(texts)
	}
	for _, d := range m.Media {
		n += MessageTokens + mediaTokens(d)
	}
	return n + MessageTokens*int64(1+len(m.Calls)+len(m.Results)) + MediaTokens*int64(len(m.Opaque))
}

// mediaTokens is the size of a medium by its provider's formula, if there is one.
func mediaTokens(m model.Media) int64 {
	if m.Likely <= 0 || m.Likely > budget.Media(m) {
		return MediaTokens
	}
	return m.Likely
}

// Tools estimates tool schemas.
func Tools(specs []model.ToolSpec) int64 {
	var n int64
	for _, s := range specs {
		n += MessageTokens + Text(s.Name) + Text(s.Description) + Text(s.Schema)
	}
	return n
}

// Ratio calibrates estimates by what a provider reported: two sums, so that it
// replays to the same numbers. The zero Ratio leaves an estimate as it is.
type Ratio struct {
	Reported, Estimated int64
}

// Bounds of a Ratio: a sample of few tokens is ignored, a sample that is further
// off than ratioMax counts as that far off, and old samples fade.
const (
	sampleMin   = 64
	ratioMax    = 4
	fadeAt      = 1 << 17
	estimateMax = 1 << 40
)

// Sample adds one pair of numbers for the same texts.
func (r Ratio) Sample(reported, estimated int64) Ratio {
	if estimated < sampleMin || estimated > estimateMax || reported <= 0 {
		return r
	}
	r.Reported += max(estimated/ratioMax, min(reported, estimated*ratioMax))
	r.Estimated += estimated
	for r.Estimated > fadeAt {
		r.Reported, r.Estimated = r.Reported/2, r.Estimated/2
	}
	return r
}

// Apply calibrates an estimate.
func (r Ratio) Apply(estimated int64) int64 {
	if r.Estimated <= 0 || estimated > estimateMax {
		return estimated
	}
	return estimated * r.Reported / r.Estimated
}
