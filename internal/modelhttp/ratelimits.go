package modelhttp

import (
	"net/http"
	"strconv"
	"strings"
)

// countMax is more than any limit of a provider, and few enough that no product overflows.
const countMax = 1 << 40

// ParseCount reads a count that a provider sent: digits only. A count without a meaning is not ok.
func ParseCount(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil && n >= 0 && n <= countMax
}

// HeaderCount reads a count from a header.
func HeaderCount(h http.Header, name string) (n int64, ok bool) {
	text := h.Get(name)
	if text == "" {
		return 0, false // few servers have such headers, and the error of a parser is an allocation
	}
	return ParseCount(text)
}
