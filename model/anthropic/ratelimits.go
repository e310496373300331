package anthropic

import (
	"net/http"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// readRateLimits reads what an answer says about the rate limits. Anthropic documents them for a
// minute, and tokens that were read from its cache as free of its limit on tokens.
func readRateLimits(h http.Header) (l model.RateLimits) {
	l.Requests, l.RequestsLeft = minuteLimit(h, "Requests")
	l.Tokens, l.TokensLeft = minuteLimit(h, "Tokens")
	l.CacheReadsFree = l.Tokens > 0
	return l
}

// minuteLimit returns a limit and the remaining amount; 0 if the answer has none.
func minuteLimit(h http.Header, kind string) (limit, left int64) {
	limit, known := modelhttp.HeaderCount(h, "Anthropic-Ratelimit-"+kind+"-Limit")
	left, hasLeft := modelhttp.HeaderCount(h, "Anthropic-Ratelimit-"+kind+"-Remaining")
	switch {
	case !known:
		return 0, 0
	case !hasLeft:
		return limit, limit
	}
	return limit, min(left, limit)
}
