package config

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestParseRetention: an age and a size each have a default and an off. Nothing else means less than something, so that a slip
// removes no run.
func TestParseRetention(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "off": -1, "30d": 30 * day, "8w": 56 * day, "36h": 36 * time.Hour, "1ms": time.Millisecond, "1h30m": 90 * time.Minute,
		"0": -2, "0d": -2, "0s": -2, "-1h": -2, "-3d": -2, "d": -2, "30": -2, "30 d": -2, "1.5d": -2, "none": -2, "Off": -2, "9999999999999d": -2, "106752d": -2} {
		age, _, err := ParseRetention(text, "")
		if bad := want == -2; bad != (err != nil) || !bad && age != want {
			t.Errorf("age %q: %s %v", text, age, err)
		}
		if err != nil && (!errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), "retain_age")) {
			t.Errorf("age %q: %v", text, err)
		}
	}
	for text, want := range map[string]int64{"": 0, "off": -1, "2GiB": 2 << 30, "500MiB": 500 << 20, "10GB": 10e9, "1.5KiB": 1536, "1": 1, "123B": 123, "7TB": 7e12,
		"0": -2, "0GiB": -2, "-1": -2, "-2GiB": -2, "GiB": -2, "2 GiB": -2, "NaN": -2, "+Inf": -2, "1e30": -2, "0.1": -2, "2GiBs": -2, "9223372036854775808": -2, "none": -2} {
		_, size, err := ParseRetention("", text)
		if bad := want == -2; bad != (err != nil) || !bad && size != want {
			t.Errorf("size %q: %d %v", text, size, err)
		}
		if err != nil && (!errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), "retain_size")) {
			t.Errorf("size %q: %v", text, err)
		}
	}
}
