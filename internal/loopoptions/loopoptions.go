// Package loopoptions checks the options of a loop as people write them, and completes them. The loop itself accepts
// whatever its task says.
package loopoptions

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/schema"
)

// Bounds of loop options.
const (
	evidenceMax      = 16      // results that one answer may require
	evidenceBytesMax = 1 << 10 // of the text that a result must contain
	triesMax         = 8       // how often an answer may be sent back
	useTokensMax     = 1 << 40 // to be used up
	roundsMax        = 100     // small continuations in a row
	watchMax         = 100     // calls that are watched
	pollingMax       = 64      // tools that are made for polling
	tailMax          = 1000    // messages, or turns of the ladder
	summaryMax       = 8192    // tokens of a summary
)

// ErrInvalid is the error of options that a loop cannot follow.
var ErrInvalid = errors.New("spec: invalid loop options")

// Check reports the first option that a loop could not follow as it is written.
func Check(m spec.LoopOptions) error {
	if len(m.Fallbacks) > spec.FallbacksMax {
		return fmt.Errorf("%w: %d fallbacks, at most %d are tried", ErrInvalid, len(m.Fallbacks), spec.FallbacksMax)
	}
	if len(m.Watch.Polling) > pollingMax {
		return fmt.Errorf("%w: %d polling tools, at most %d", ErrInvalid, len(m.Watch.Polling), pollingMax)
	}
	if len(m.Hooks) > spec.HooksMax {
		return fmt.Errorf("%w: %d hooks, at most %d", ErrInvalid, len(m.Hooks), spec.HooksMax)
	}
	for _, h := range m.Hooks {
		if err := h.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	for _, n := range numbersOf(m) {
		if n.is < n.low || n.is > n.high {
			return fmt.Errorf("%w: %s is %d, it may be %d to %d", ErrInvalid, strings.TrimPrefix(n.of+"."+n.name, "."), n.is, n.low, n.high)
		}
	}
	return CheckRequire(m.Require)
}

// Fill sets the defaults explicitly: the log records the options of a run, and a
// later default must not change them.
func Fill(m spec.LoopOptions) spec.LoopOptions {
	if c := &m.Continue; c.Tokens > 0 {
		c.Percent, c.Small, c.Rounds = cmp.Or(c.Percent, spec.ContinuePercent), cmp.Or(c.Small, spec.ContinueSmall), cmp.Or(c.Rounds, spec.ContinueRounds)
	}
	if r := &m.Require; r.Schema != "" || len(r.Evidence) > 0 {
		r.Tries = cmp.Or(r.Tries, spec.RequireTries)
	}
	if c := &m.Context; c.Percent > 0 {
		c.Tail, c.PruneTail = cmp.Or(c.Tail, spec.CompactTail), cmp.Or(c.PruneTail, spec.PruneTail)
		c.Within, c.Summary = cmp.Or(c.Within, spec.LadderTurns), cmp.Or(c.Summary, spec.SummaryTokens)
	}
	return m
}

// CheckRequire reports a requirement that could never be met.
func CheckRequire(r spec.Require) error {
	if len(r.Evidence) > evidenceMax {
		return fmt.Errorf("%w: %d results are required, at most %d may be", ErrInvalid, len(r.Evidence), evidenceMax)
	}
	for _, e := range r.Evidence {
		if e.Tool == "" {
			return fmt.Errorf("%w: require.evidence has no tool", ErrInvalid)
		}
		if len(e.Contains) > evidenceBytesMax {
			return fmt.Errorf("%w: what a result of %s must contain has %d bytes, at most %d are allowed", ErrInvalid, e.Tool, len(e.Contains), evidenceBytesMax)
		}
	}
	if r.Schema == "" {
		return nil
	}
	if _, err := schema.Compile(r.Schema); err != nil {
		return fmt.Errorf("%w: the schema of the answer: %w", ErrInvalid, err)
	}
	return nil
}

type bounded struct {
	of, name      string
	is, low, high int64
}

func numbersOf(m spec.LoopOptions) []bounded {
	c, w, b, n := m.Context, m.Watch, m.Breaker, m.Continue
	return []bounded{
		{"require", "tries", int64(m.Require.Tries), 0, triesMax},
		{"continue", "tokens", n.Tokens, spec.Off, useTokensMax}, {"continue", "percent", int64(n.Percent), 0, 100},
		{"continue", "small", n.Small, 0, useTokensMax}, {"continue", "rounds", int64(n.Rounds), 0, roundsMax},
		{"watch", "of", int64(w.Of), spec.Off, watchMax}, {"watch", "identical", int64(w.Identical), 0, watchMax},
		{"watch", "pattern", int64(w.Pattern), 0, watchMax}, {"watch", "stuck", int64(w.Stuck), 0, watchMax},
		{"breaker", "failures", int64(b.Failures), spec.Off, watchMax}, {"breaker", "forbidden", int64(b.Forbidden), spec.Off, watchMax},
		{"context", "percent", int64(c.Percent), spec.Off, 95}, {"context", "tail", int64(c.Tail), 0, tailMax},
		{"context", "prune_tail", int64(c.PruneTail), 0, tailMax}, {"context", "within", int64(c.Within), 0, tailMax},
		{"context", "summary_tokens", c.Summary, 0, summaryMax},
		{"limit_notes", "near", int64(m.LimitNotes.Near), spec.Off, 100}, {"limit_notes", "last", int64(m.LimitNotes.Last), 0, 100},
		{"", "tool_retries", int64(m.ToolRetries), spec.Off, spec.ToolRetriesMax}, {"", "patience_ms", m.PatienceMS, spec.Off, spec.PatienceMax},
	}
}
