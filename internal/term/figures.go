package term

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The page formats figures by the same rules (internal/ui/web/src/text.ts); testdata/figures.json has the cases of both. A half
// is rounded up: the formatters of Go and of browsers differ there.

// FormatTokens formats a number of tokens for people: 950, 4.1k, 1.2M.
func FormatTokens(n int64) string { return formatTokens(n) }

func formatTokens(n int64) string {
	const tenthOfThousand, tenthOfMillion, thousand = 100, 100_000, 10_000 // in tenths of the unit below
	switch k := (n + tenthOfThousand/2) / tenthOfThousand; {
	case n < 1000:
		return fmt.Sprint(n)
	case k < thousand:
		return formatTenths(k) + "k"
	}
	return formatTenths((n+tenthOfMillion/2)/tenthOfMillion) + "M"
}

// formatTenths formats a number of tenths; a whole number has no decimal.
func formatTenths(n int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%d.%d", n/10, n%10), ".0")
}

// FormatUSD formats dollars for people: $1.00, $0.02, $0.0004, and $0 for nothing. An estimate has a ~ before it.
func FormatUSD(usd float64, estimated bool) string {
	if usd == 0 {
		return "$0"
	}
	text := fmt.Sprintf("$%.2f", math.Floor(usd*1e2+0.5)/1e2)
	if usd < 0.01 {
		text = fmt.Sprintf("$%.4f", math.Floor(usd*1e4+0.5)/1e4)
	}
	if estimated {
		return "~" + text
	}
	return text
}

// FormatDuration formats a duration for people: 180ms, 1.9s, 2m05s.
func FormatDuration(d time.Duration) string {
	const tenth = 100 * time.Millisecond
	switch tenths := int64((d + tenth/2) / tenth); {
	case d < time.Second:
		return fmt.Sprintf("%dms", max(0, d.Milliseconds()))
	case tenths < 600:
		return fmt.Sprintf("%d.%ds", tenths/10, tenths%10)
	case d < time.Hour:
		d = max(d, time.Minute) // 59.96s
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// FormatAge is FormatDuration in one unit: 3s, 2m, 5h, 12d.
func FormatAge(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func formatClock(d time.Duration) string {
	d = max(0, d)
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
