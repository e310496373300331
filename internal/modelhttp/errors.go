package modelhttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/model"
)

// Bounds on the contents of an error.
const (
	MaxMessage    = 500
	MaxRetryAfter = time.Hour
)

// statusOverloaded is Anthropic's own status for a service under load.
const statusOverloaded = 529

// ClassifyError reads the error that a provider sent: as a response with that status
// and headers, or with status 0 as an event in the middle of a stream.
func ClassifyError(status int, header http.Header, body []byte, secrets ...string) *model.Error {
	body = body[:min(len(body), MaxErrorBody)] // an event may be longer; what is cut off does not decode
	kind, message := parseEnvelope(body)
	if message == "" && status != 0 {
		message = http.StatusText(status)
	}
	return &model.Error{
		Class:      errorClass(status, kind, message),
		Status:     status,
		RetryAfter: max(retryAfter(header), retryInfo(body)),
		// Providers document refused requests as free. A server may have worked on a request with
		// 408 or 499; an event in a stream follows output.
		Unbilled: status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != 499 || status == statusOverloaded,
		Message:  ScrubText(message, secrets...),
	}
}

// hasError reports whether a JSON body carries an error.
func hasError(body []byte) bool {
	kind, message := parseEnvelope(body)
	return kind != "" || message != ""
}

// parseEnvelope finds the kind and the message of an error in the forms in use:
// {"error":{"type","code","message"}}, {"error":"text"}, {"message":"text"}.
// The kinds are joined: each provider puts the telling one elsewhere.
func parseEnvelope(body []byte) (kind, message string) {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message any             `json:"message"`
	}
	if json.Unmarshal(FirstError(body), &outer) != nil {
		return "", ""
	}
	var inner struct {
		Type    any `json:"type"`
		Code    any `json:"code"`
		Status  any `json:"status"`
		Message any `json:"message"`
	}
	if json.Unmarshal(outer.Error, &inner) == nil {
		message, _ = inner.Message.(string)
		for _, k := range []any{inner.Type, inner.Code, inner.Status} {
			if s, ok := k.(string); ok && s != "" {
				kind += " " + strings.ToLower(s)
			}
		}
		for _, d := range errorDetails(body) {
			if d.Reason != "" {
				kind += " " + strings.ToLower(d.Reason)
			}
		}
		return kind, message
	}
	if json.Unmarshal(outer.Error, &message) == nil && message != "" {
		return "", message
	}
	message, _ = outer.Message.(string)
	return "", message
}

// FirstError returns the first error of a body that is a list: Google answers in this form
// if a list was requested.
func FirstError(body []byte) []byte {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return body
}

// errorDetail is one of the details that Google puts into an error.
type errorDetail struct {
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"`
}

func errorDetails(body []byte) []errorDetail {
	var outer struct {
		Error struct {
			Details []errorDetail `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(FirstError(body), &outer) != nil {
		return nil
	}
	return outer.Error.Details
}

// retryInfo reads from the body how long Google asks the client to wait; 0 if the body does
// not say.
func retryInfo(body []byte) time.Duration {
	for _, d := range errorDetails(body) {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil {
			return min(max(wait, 0), MaxRetryAfter)
		}
	}
	return 0
}

// kindClasses maps the providers' error codes to classes, in this order: more specific codes come
// first.
var kindClasses = []struct {
	word  string
	class model.ErrorClass
}{
	{"context_length_exceeded", model.TooLong},
	{"request_too_large", model.TooLong},
	{"insufficient_quota", model.Quota},
	{"billing", model.Quota},
	{"rate_limit", model.RateLimit},
	{"overloaded", model.Overload},
	{"authentication", model.Auth},
	{"invalid_api_key", model.Auth},
	{"api_key_invalid", model.Auth},
	{"unauthenticated", model.Auth},
	{"permission", model.Auth},
	{"content_policy", model.Refused},
	{"content_filter", model.Refused},
	{"invalid_prompt", model.Refused}, // OpenAI's word for a prompt against its rules
	{"_policy", model.Refused},
	{"invalid_image", model.BadRequest},
	{"model_not_found", model.Misconfigured},
	{"not_found", model.Misconfigured},
	{"resource_exhausted", model.RateLimit},
	{"failed_precondition", model.Misconfigured},
	{"unavailable", model.Overload},
	{"deadline_exceeded", model.Network},
	{"timeout", model.Network},
	{"api_error", model.Overload},
	{"server_error", model.Overload},
	{"internal", model.Overload},
}

// tooLongPhrases are the providers' phrases for a prompt that does not fit.
var tooLongPhrases = []string{
	"prompt is too long", "context length", "context window", "context limit", "maximum context",
	"exceeds the context", "exceed context", "too many tokens", "input is too long",
	"exceeds the maximum number of tokens",
}

// emptyAccountPhrase is Anthropic's phrase for an empty account, which it reports as an invalid
// request.
const emptyAccountPhrase = "credit balance is too low"

func errorClass(status int, kind, message string) model.ErrorClass {
	low := strings.ToLower(message)
	if strings.Contains(low, emptyAccountPhrase) {
		return model.Quota
	}
	if status == 0 || status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity {
		for _, words := range tooLongPhrases {
			if strings.Contains(low, words) {
				return model.TooLong
			}
		}
	}
	for _, k := range kindClasses {
		if strings.Contains(kind, k.word) {
			return k.class
		}
	}
	switch {
	case status == http.StatusTooManyRequests:
		return model.RateLimit
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return model.Auth
	case status == http.StatusRequestEntityTooLarge:
		return model.TooLong
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return model.Misconfigured
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return model.Network
	case status == http.StatusConflict, status >= 500:
		return model.Overload
	case status >= 400, strings.Contains(kind, "invalid_request"), strings.Contains(kind, "invalid_argument"):
		return model.BadRequest
	}
	return model.UnknownClass
}

// retryAfter reads how long the provider asks to wait; 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	var d time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = boundedDuration(ms, time.Millisecond)
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		d = boundedDuration(s, time.Second)
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), MaxRetryAfter)
}

// boundedDuration is n units, bounded before it can overflow; not a number counts as 0.
func boundedDuration(n float64, unit time.Duration) time.Duration {
	if !(n > 0) {
		return 0
	}
	return time.Duration(min(n, float64(MaxRetryAfter/unit)) * float64(unit))
}

// rootCause strips the wrapping that names the URL of a request.
func rootCause(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}

func isSyntaxError(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}

const redacted = "[redacted]"

var (
	userinfo = lazyregexp.New(`://[^/\s"']*@`)
	query    = lazyregexp.New(`(://[^\s"'?]*)\?[^\s"']*`)
	keyLike  = lazyregexp.New(`(?i)\b(?:sk|pk|rk)-[a-z0-9_*-]{6,}|\baiza[a-z0-9_-]{20,}|\bbearer\s+[^\s"',]+`)
)

// minSecret keeps a one-letter test key from redacting half a message.
const minSecret = 4

// ScrubText makes a provider's or a library's text safe to show: no secret, nothing
// that looks like a key, no user info or query of a URL, one line, bounded.
func ScrubText(text string, secrets ...string) string {
	text = clip.Marked(strings.ToValidUTF8(text, "\uFFFD"), MaxErrorBody, "…")
	for _, s := range secrets {
		if len(s) >= minSecret {
			text = strings.ReplaceAll(text, s, redacted)
			text = strings.ReplaceAll(text, url.QueryEscape(s), redacted)
		}
	}
	text = userinfo.ReplaceAllString(text, "://")
	text = query.ReplaceAllString(text, "$1")
	text = keyLike.ReplaceAllString(text, redacted)
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return clip.Marked(strings.Join(strings.Fields(text), " "), MaxMessage, "…")
}
