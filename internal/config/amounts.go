package config

import (
	"strconv"

	"github.com/troupe-run/troupe/internal/amount"
)

// inNumbers returns an amount such as 200k or $2 as the number that it is; checkValue reports one that is none.
func (s Setting) inNumbers() Setting {
	switch settingKinds[s.Key] {
	case tokensKind:
		if n, err := amount.ParseTokens(s.Value); err == nil {
			s.Value = strconv.FormatInt(n, 10)
		}
	case numberKind:
		if v, err := amount.ParseUSD(s.Value); err == nil {
			s.Value = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return s
}
