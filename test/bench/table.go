package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// noisy is the relative spread of the rounds above which a median is marked.
const noisy = 0.3

// median returns the middle of the values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// isNoisy reports whether the rounds differ much.
func isNoisy(values []float64) bool {
	m := median(values)
	return m > 0 && (slices.Max(values)-slices.Min(values))/m > noisy
}

// ratio is the quotient of two medians; false if one is missing.
func (r results) ratio(w string, f figure, of, base string) (float64, bool) {
	a, b := r[cell{w, of, f}], r[cell{w, base, f}]
	if len(a) == 0 || len(b) == 0 || median(b) <= 0 {
		return 0, false
	}
	return median(a) / median(b), true
}

// writeTable prints one row for each workload and figure: the median of each column, and in
// parentheses its ratios to the floor and to eino.
func (r results) writeTable(out io.Writer, p plan) {
	header := []string{"workload", "figure"}
	for _, c := range p.columns {
		header = append(header, c.name)
	}
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---|", len(header)))
	for _, w := range p.workloads {
		for _, f := range w.figures {
			row, measured := []string{w.name, string(f)}, false
			for _, c := range p.columns {
				row = append(row, r.format(w.name, f, c.name))
				measured = measured || len(r[cell{w.name, c.name, f}]) > 0
			}
			if measured {
				fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
			}
		}
	}
	fmt.Fprintln(out, "\nMedians; in parentheses the ratio to the floor, then to eino. ~ marks rounds that differ by more than 30 %.")
}

func (r results) format(w string, f figure, column string) string {
	values := r[cell{w, column, f}]
	if len(values) == 0 {
		return ""
	}
	text := formatNumber(median(values))
	if isNoisy(values) {
		text = "~" + text
	}
	var ratios []string
	for _, base := range []string{columnFloor, columnEino} {
		if q, ok := r.ratio(w, f, column, base); ok && base != column && column != columnFloor {
			ratios = append(ratios, formatNumber(q))
		}
	}
	if len(ratios) > 0 {
		text += " (" + strings.Join(ratios, ", ") + ")"
	}
	return text
}

// formatNumber prints three significant digits, and no fractions of large numbers.
func formatNumber(v float64) string {
	switch {
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
