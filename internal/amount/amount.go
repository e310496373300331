// Package amount reads amounts of tokens and of money as the screens print them: 200k, 1.5M, $2.
package amount

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// What an amount may be at most.
const (
	TokensMax = 1e15
	USDMax    = 1e6
)

// wholeWithin is how far a number may be from a whole one: 4.1 times 1,000 is not exactly 4,100.
const wholeWithin = 1e-6

// Errors say what is expected instead of a text that is no amount.
var (
	ErrTokens = errors.New("a whole number, such as 20000, 20k or 1.5M")
	ErrUSD    = errors.New("an amount, such as 0.5 or $2")
)

var suffixes = map[byte]float64{'k': 1e3, 'K': 1e3, 'm': 1e6, 'M': 1e6}

// ParseTokens reads a whole number of tokens, such as 200000, 200_000, 200k or 1.5M.
func ParseTokens(text string) (int64, error) {
	if !areSeparators(text) {
		return 0, ErrTokens
	}
	text = strings.ReplaceAll(text, "_", "")
	number, factor := text, 1.0
	if n := len(text); n > 0 && suffixes[text[n-1]] != 0 {
		number, factor = text[:n-1], suffixes[text[n-1]]
	}
	v, err := strconv.ParseFloat(number, 64)
	v *= factor
	isPlain := strings.Trim(strings.TrimPrefix(number, "-"), "0123456789.") == ""
	if err != nil || !isPlain || !(math.Abs(v) <= TokensMax) || math.Abs(v-math.Round(v)) > wholeWithin {
		return 0, ErrTokens
	}
	return int64(math.Round(v)), nil
}

// areSeparators reports whether each "_" in a text stands between two digits.
func areSeparators(text string) bool {
	for i := range len(text) {
		if text[i] == '_' && (i == 0 || i == len(text)-1 || !isDigit(text[i-1]) || !isDigit(text[i+1])) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// ParseUSD reads an amount in US dollars, such as 0.5 or $2.
func ParseUSD(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || strings.ContainsAny(text, "xX_") || !(math.Abs(v) <= USDMax) {
		return 0, ErrUSD
	}
	return v, nil
}

// Tokens is the value of a flag that takes a number of tokens.
type Tokens struct{ Into *int64 }

// String implements pflag.Value.
func (t Tokens) String() string {
	if t.Into == nil {
		return "0"
	}
	return strconv.FormatInt(*t.Into, 10)
}

// Set implements pflag.Value.
func (t Tokens) Set(text string) (err error) {
	*t.Into, err = ParseTokens(text)
	return err
}

// Type implements pflag.Value.
func (Tokens) Type() string { return "tokens" }

// USD is the value of a flag that takes an amount in US dollars.
type USD struct{ Into *float64 }

// String implements pflag.Value.
func (u USD) String() string {
	if u.Into == nil {
		return "0"
	}
	return strconv.FormatFloat(*u.Into, 'g', -1, 64)
}

// Set implements pflag.Value.
func (u USD) Set(text string) (err error) {
	*u.Into, err = ParseUSD(text)
	return err
}

// Type implements pflag.Value.
func (USD) Type() string { return "usd" }
