package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// keepAll is the value of a limit of retention that removes nothing.
const keepAll = "off"

const day = 24 * time.Hour

// ageUnits are the units of an age that a Go duration lacks, sizeUnits those of a size, the longest names first.
var (
	ageUnits = []struct {
		name string
		of   time.Duration
	}{{"d", day}, {"w", 7 * day}}
	sizeUnits = []struct {
		name string
		of   float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}
)

// ParseRetention parses the settings retain_age and retain_size. "" is 0, which means the default, and off is -1, which
// means no limit.
func ParseRetention(age, size string) (after time.Duration, bytes int64, err error) {
	if after, err = parseRetainAge(age); err != nil {
		return 0, 0, fmt.Errorf("%w retain_age: %w", ErrSetting, err)
	}
	if bytes, err = parseRetainSize(size); err != nil {
		return 0, 0, fmt.Errorf("%w retain_size: %w", ErrSetting, err)
	}
	return after, bytes, nil
}

func parseRetainAge(text string) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case keepAll:
		return -1, nil
	}
	for _, unit := range ageUnits {
		if number, ok := strings.CutSuffix(text, unit.name); ok {
			if n, err := strconv.ParseInt(number, 10, 64); err == nil && n > 0 && n <= int64(math.MaxInt64/unit.of) {
				return time.Duration(n) * unit.of, nil
			}
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("%q is neither an age such as 36h, 30d or 8w nor off", text)
}

func parseRetainSize(text string) (int64, error) {
	switch text {
	case "":
		return 0, nil
	case keepAll:
		return -1, nil
	}
	number, unit := text, 1.0
	for _, u := range sizeUnits {
		if before, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = before, u.of
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if bytes := n * unit; err == nil && bytes >= 1 && bytes < math.MaxInt64 {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("%q is neither a size such as 500MiB or 2GiB nor off", text)
}
