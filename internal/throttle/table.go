package throttle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// RateTable holds what may be sent in a minute: requests or tokens, by PROVIDER for each of its
// models, or by PROVIDER/MODEL, which takes precedence.
type RateTable map[string]int64

// ErrRates says that rates cannot be read, or have no meaning.
var ErrRates = errors.New("invalid rates per minute")

// RateMax is the highest rate that may be set.
const RateMax = 1_000_000_000

// ParseRateTable reads "openai=500,anthropic/claude-opus-4-1=50". "" has no rates.
func ParseRateTable(text string) (RateTable, error) {
	table := RateTable{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, number, ok := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%w: %q is not PROVIDER=NUMBER or PROVIDER/MODEL=NUMBER, such as openai=500", ErrRates, item)
		}
		if _, twice := table[name]; twice {
			return nil, fmt.Errorf("%w: %s is given twice", ErrRates, name)
		}
		table[name] = n
	}
	return table, table.Check()
}

// Check refuses names and numbers without a meaning.
func (t RateTable) Check() error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		p, rest, isModel := strings.Cut(name, "/")
		if p == "" || isModel && rest == "" {
			return fmt.Errorf("%w: %q is not PROVIDER or PROVIDER/MODEL", ErrRates, name)
		}
		if n := t[name]; n < 1 || n > RateMax {
			return fmt.Errorf("%w: %s=%d: it may be 1 to %d; leave it out for no limit", ErrRates, name, n, RateMax)
		}
	}
	return nil
}

// Of returns the rate of a model; 0: the table has none.
func (t RateTable) Of(provider, model string) int64 {
	if n, ok := t[provider+"/"+model]; ok {
		return n
	}
	return t[provider]
}

// of returns the rate of a name of a table.
func (t RateTable) of(name string) int64 {
	p, rest, _ := strings.Cut(name, "/")
	return t.Of(p, rest)
}

// RaisedBy returns a name at which the other table has a higher rate than t has; "": there is none.
func (t RateTable) RaisedBy(other RateTable) string {
	for _, name := range slices.Sorted(maps.Keys(other)) {
		if own := t.of(name); own > 0 && other[name] > own {
			return name
		}
	}
	return ""
}

// LoweredBy returns the table in which the lower rate of both counts everywhere.
func (t RateTable) LoweredBy(other RateTable) RateTable {
	both := RateTable{}
	for _, table := range []RateTable{t, other} {
		for name := range table {
			a, b := t.of(name), other.of(name)
			if both[name] = min(a, b); a == 0 || b == 0 {
				both[name] = max(a, b)
			}
		}
	}
	return both
}

// String is the form that ParseRateTable reads.
func (t RateTable) String() string {
	items := make([]string, 0, len(t))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		items = append(items, fmt.Sprintf("%s=%d", name, t[name]))
	}
	return strings.Join(items, ",")
}
