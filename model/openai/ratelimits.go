package openai

import (
	"net/http"
	"strconv"
	"time"

	"github.com/troupe-run/troupe/internal/modelhttp"
	"github.com/troupe-run/troupe/model"
)

// The headers give a limit, how much of it is left, and the time until all of it is back, but not the
// period of the limit: some limits of OpenAI, and of servers with the same headers, are for a day.
// The period follows from the three. Those between the bounds are a minute, as far as the
// rounding of the time shows.
const (
	minuteLeast = 30 * time.Second
	minuteMost  = 150 * time.Second
)

// readRateLimits reads what an answer says about the rate limits.
func readRateLimits(h http.Header) (l model.RateLimits) {
	l.Requests, l.RequestsLeft = minuteLimit(h, "Requests")
	l.Tokens, l.TokensLeft = minuteLimit(h, "Tokens")
	return l
}

// minuteLimit returns a limit for a minute and the remaining amount; 0 if the answer has none.
func minuteLimit(h http.Header, kind string) (limit, left int64) {
	limit, known := modelhttp.HeaderCount(h, "X-Ratelimit-Limit-"+kind)
	if !known {
		return 0, 0
	}
	left, hasLeft := modelhttp.HeaderCount(h, "X-Ratelimit-Remaining-"+kind)
	reset, hasReset := resetSeconds(h.Get("X-Ratelimit-Reset-" + kind))
	if !hasLeft || !hasReset || left >= limit {
		return 0, 0
	}
	period := reset * float64(limit) / float64(limit-left)
	if period < minuteLeast.Seconds() || period > minuteMost.Seconds() {
		return 0, 0
	}
	return limit, left
}

// resetSeconds reads the time of a reset: 1s, 6m0s or 120ms. Some servers send a number of seconds.
func resetSeconds(text string) (seconds float64, ok bool) {
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds(), d > 0
	}
	seconds, err := strconv.ParseFloat(text, 64)
	return seconds, err == nil && seconds > 0
}
