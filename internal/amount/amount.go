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
	tokensMost = 1e15
	usdMost    = 1e9
)

// Errors say what is expected instead of a text that is no amount.
var (
	ErrTokens = errors.New("a whole number, such as 20000, 20k or 1.5M")
	ErrUSD    = errors.New("an amount, such as 0.5 or $2")
)

var suffixes = map[byte]float64{'k': 1e3, 'K': 1e3, 'm': 1e6, 'M': 1e6}

// ParseTokens reads a whole number of tokens, such as 200000, 200_000, 200k or 1.5M.
func ParseTokens(text string) (int64, error) {
	text = strings.ReplaceAll(text, "_", "")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	if text == "" || suffixes[text[len(text)-1]] == 0 {
		return 0, ErrTokens
	}
	v, err := strconv.ParseFloat(text[:len(text)-1], 64)
	v *= suffixes[text[len(text)-1]]
	if err != nil || !(math.Abs(v) <= tokensMost) {
		return 0, ErrTokens
	}
	return int64(math.Round(v)), nil
}

// ParseUSD reads an amount in US dollars, such as 0.5 or $2.
func ParseUSD(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(math.Abs(v) <= usdMost) {
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
