package amount

import "testing"

func TestParseTokens(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "200000": 200000, "200_000": 200000, "200k": 200000, "200K": 200000, "1.5M": 1500000, "2m": 2000000, "-3": -3, "-1k": -1000, "4.1k": 4100} {
		if n, err := ParseTokens(text); n != want || err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "k", "1.5", "200kk", "$200", "NaNk", "Infk", "9e99M", "200 k", "2G", "0.0001k", "1.0005k", "0x1p4k", "1e3k", "1e3", "2000000000000000", "."} {
		if n, err := ParseTokens(text); err == nil {
			t.Errorf("%s is %d", text, n)
		}
	}
}

func TestParseUSD(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "0.5": 0.5, "$2": 2, "$0.02": 0.02, "-1": -1} {
		if v, err := ParseUSD(text); v != want || err != nil {
			t.Errorf("%s: %g, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "$", "2$", "$$2", "NaN", "Inf", "-Inf", "1e300", "2k"} {
		if v, err := ParseUSD(text); err == nil {
			t.Errorf("%s is %g", text, v)
		}
	}
}
