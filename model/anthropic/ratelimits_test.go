package anthropic

import (
	"net/http"
	"testing"

	"github.com/troupe-run/troupe/model"
)

// The limits of Anthropic are for a minute; what cannot be true is not reported.
func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		requests, left, tokens, tokensLeft string
		want                               model.RateLimits
	}{
		{"50", "49", "40000", "39000", model.RateLimits{Requests: 50, RequestsLeft: 49, Tokens: 40000, TokensLeft: 39000}},
		{"50", "0", "", "", model.RateLimits{Requests: 50}},
		{"50", "", "40000", "90000", model.RateLimits{Requests: 50, RequestsLeft: 50, Tokens: 40000, TokensLeft: 40000}},
		{"50", "-3", "40000", "some", model.RateLimits{Requests: 50, RequestsLeft: 50, Tokens: 40000, TokensLeft: 40000}},
		{"", "7", "-40000", "1", model.RateLimits{}},
		{"0x50", "7", "9999999999999999", "1", model.RateLimits{}},
	} {
		h := http.Header{}
		h.Set("anthropic-ratelimit-requests-limit", c.requests)
		h.Set("anthropic-ratelimit-requests-remaining", c.left)
		h.Set("anthropic-ratelimit-tokens-limit", c.tokens)
		h.Set("anthropic-ratelimit-tokens-remaining", c.tokensLeft)
		c.want.CacheReadsFree = c.want.Tokens > 0
		if got := readRateLimits(h); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
