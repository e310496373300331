package catalog

import (
	"encoding/json"
	"fmt"
	"math/big"
)

const (
	nanoUSD  = 1_000_000_000 // in a dollar
	rateMax  = 1 << 24       // nano-dollars a token: far beyond any price
	countMax = 1 << 30       // tokens: far beyond any window
	wordMax  = 32            // bytes of a number: an exponent of a thousand digits is an attack
)

// parseRate converts a price in dollars per number of tokens to billionths of a dollar per
// token. It rounds up, because a reservation must cover the call. known is false if the
// file states no price.
func parseRate(raw json.RawMessage, per int64) (nano int64, known bool, err error) {
	n, known, err := parseNumber(raw)
	if err != nil || !known {
		return 0, false, err
	}
	n.Mul(n, big.NewRat(nanoUSD, per))
	up := new(big.Int).Add(n.Num(), new(big.Int).Sub(n.Denom(), big.NewInt(1)))
	up.Quo(up, n.Denom())
	if n.Sign() < 0 || !up.IsInt64() || up.Int64() > rateMax {
		return 0, false, fmt.Errorf("%w: the price %s", ErrEntry, raw)
	}
	return up.Int64(), true, nil
}

// parseCount reads a number of tokens; 0 if the file states none.
func parseCount(raw json.RawMessage) (int64, error) {
	n, known, err := parseNumber(raw)
	if err != nil || !known {
		return 0, err
	}
	if n.Sign() < 0 || !n.IsInt() || !n.Num().IsInt64() || n.Num().Int64() > countMax {
		return 0, fmt.Errorf("%w: %s tokens", ErrEntry, raw)
	}
	return n.Num().Int64(), nil
}

func parseNumber(raw json.RawMessage) (n *big.Rat, known bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, false, nil
	}
	var f float64 // in its range no exponent is large
	if len(raw) > wordMax || json.Unmarshal(raw, &f) != nil {
		return nil, false, fmt.Errorf("%w: %.40q is no number", ErrEntry, raw)
	}
	n, ok := new(big.Rat).SetString(string(raw))
	if !ok {
		return nil, false, fmt.Errorf("%w: %.40q is no number", ErrEntry, raw)
	}
	return n, true, nil
}
