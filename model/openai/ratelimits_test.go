package openai

import (
	"net/http"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/model"
)

// The headers of OpenAI have no period: a limit for a day, which OpenAI and others have, is no limit for a
// minute, and nothing that a server sends in them does harm.
func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, requests, tokens string // limit, left, reset
		want                   model.RateLimits
	}{
		{"as documented", "60 59 1s", "150000 149984 6ms", model.RateLimits{Requests: 60, RequestsLeft: 59, Tokens: 150000, TokensLeft: 149984}},
		{"used up", "500 0 59.88s", "30000 0 1m0s", model.RateLimits{Requests: 500, Tokens: 30000}},
		{"requests of a day", "10000 9999 8.64s", "200000 199000 300ms", model.RateLimits{Tokens: 200000, TokensLeft: 199000}},
		{"requests of a day at Groq", "14400 14370 2m59.56s", "18000 17997 7.66ms", model.RateLimits{Tokens: 18000, TokensLeft: 17997}},
		{"numbers of seconds", "60 30 30", "", model.RateLimits{Requests: 60, RequestsLeft: 30}},
		{"a limit of a second", "10 9 100ms", "", model.RateLimits{}},
		{"nothing was used", "60 60 0s", "", model.RateLimits{}},
		{"more left than there is", "60 90 1s", "", model.RateLimits{}},
		{"without the rest", "60", "100 50", model.RateLimits{}},
		{"no numbers", "many few soon", "NaN Inf NaN", model.RateLimits{}},
		{"negative", "-60 -61 1s", "60 -1 1s", model.RateLimits{}},
		{"endless", "60 0 Inf", "99999999999999999999 1 1s", model.RateLimits{}},
		{"backwards", "60 0 -60s", "60 0 1e400", model.RateLimits{}},
		{"nothing", "0 0 60s", "", model.RateLimits{}},
	} {
		h := http.Header{}
		for kind, text := range map[string]string{"requests": c.requests, "tokens": c.tokens} {
			for i, v := range strings.Fields(text) {
				h.Set("x-ratelimit-"+[]string{"limit-", "remaining-", "reset-"}[i]+kind, v)
			}
		}
		if got := readRateLimits(h); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
