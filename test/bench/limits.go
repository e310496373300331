package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Margins above what was reached. Counts (allocations, bytes, heap) hardly change from run to
// run, so a regression by half fails. Processor time of one column to that of another changes by
// half on a machine that does something else, so only a doubling fails.
const (
	marginOfCounts = 1.3
	marginOfTimes  = 2
)

// limit bounds the ratio of one column to another. Times differ from machine to machine; ratios
// of two columns that were measured in the same minutes differ much less.
type limit struct {
	name     string
	workload string
	figure   figure
	of, base string
	reached  float64 // when the limit was set
}

// limits are the ratios that `-check` holds. Lower reached when the product gets better.
func limits() []limit {
	return []limit{
		{"a turn allocates", "one", allocsPerTurn, columnEntry, columnEino, 4.7},
		{"a turn allocates bytes", "one", bytesPerTurn, columnEntry, columnEino, 4.9},
		{"a turn computes", "one", cpuPerTurn, columnEntry, columnEino, 20},
		{"a turn of the actors allocates", "one", allocsPerTurn, columnMemory, columnEino, 3.8},
		{"a turn of the actors computes", "one", cpuPerTurn, columnMemory, columnEino, 14},
		{"a turn over HTTP allocates", "one-http", allocsPerTurn, columnEntry, columnEino, 0.86},
		{"a turn over HTTP allocates bytes", "one-http", bytesPerTurn, columnEntry, columnEino, 0.65},
		{"a turn over HTTP computes", "one-http", cpuPerTurn, columnEntry, columnEino, 1.15},
		{"a run allocates", "start", allocsPerTurn, columnEntry, columnEino, 16.7},
		{"a run allocates bytes", "start", bytesPerTurn, columnEntry, columnEino, 18.9},
		{"a run computes", "start", cpuPerTurn, columnEntry, columnEino, 90},
		{"a child allocates", "fan-out", allocsPerChild, columnEntry, columnEino, 9.9},
		{"an agent that waits", "waiting-100", heapPerAgent, columnEntry, columnEino, 5.2},
		{"an agent of the actors that waits", "waiting-100", heapPerAgent, columnMemory, columnEino, 3.3},
	}
}

// most is the highest ratio that passes.
func (l limit) most() float64 {
	switch l.figure {
	case allocsPerTurn, bytesPerTurn, allocsPerChild, heapPerAgent:
		return l.reached * marginOfCounts
	}
	return l.reached * marginOfTimes
}

// isLimited reports whether a limit needs a workload in a column.
func isLimited(w, c string) bool {
	for _, l := range limits() {
		if l.workload == w && (l.of == c || l.base == c) {
			return true
		}
	}
	return false
}

// errLimits: a ratio is above its limit.
var errLimits = errors.New("bench: a ratio is above its limit")

// leastRatio is the quotient of the least of all rounds: what else a machine does only adds.
// It is missing if a figure is not positive: nothing was measured.
func (r results) leastRatio(l limit) (float64, bool) {
	a, b := r[cell{l.workload, l.of, l.figure}], r[cell{l.workload, l.base, l.figure}]
	if len(a) == 0 || len(b) == 0 || slices.Min(a) <= 0 || slices.Min(b) <= 0 {
		return 0, false
	}
	return slices.Min(a) / slices.Min(b), true
}

// checkLimits prints each limited ratio and returns an error if one is too high or missing.
func (r results) checkLimits(out io.Writer) error {
	failed := 0
	for _, l := range limits() {
		q, ok := r.leastRatio(l)
		verdict := "ok"
		if !ok || q > l.most() {
			verdict = "FAILED"
			failed++
		}
		fmt.Fprintf(out, "%-6s %s: %s / %s is %s in %s of %s, at most %s\n", verdict, l.name, l.of, l.base, formatNumber(q), l.figure, l.workload, formatNumber(l.most()))
	}
	if failed > 0 {
		return fmt.Errorf("%w: %d of %d", errLimits, failed, len(limits()))
	}
	return nil
}

// attempts is how often a check measures before it fails: the least of all rounds counts, so a
// regression fails each time, and a machine that was busy meanwhile does not.
const attempts = 3

// check measures what the limits need, and once more while a ratio is too high.
func (p plan) check(out io.Writer) error {
	p.only = isLimited
	all := results{}
	for attempt := 1; ; attempt++ {
		if err := p.measureInto(all); err != nil {
			return err
		}
		fmt.Fprintln(out)
		err := all.checkLimits(out)
		if err == nil || attempt == attempts {
			return err
		}
	}
}
