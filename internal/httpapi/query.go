package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// queryReader reads the parameters of a query, and keeps the first error.
type queryReader struct {
	values url.Values
	bad    string
}

func (q *queryReader) text(name string) string { return q.values.Get(name) }

func (q *queryReader) fail(name, want string) {
	if q.bad == "" {
		q.bad = name + "=" + quoteShort(q.values.Get(name)) + " is not " + want
	}
}

func (q *queryReader) number(name string, missing, least, most int) int {
	if !q.values.Has(name) {
		return missing
	}
	n, err := strconv.Atoi(q.values.Get(name))
	if err != nil || n < least || n > most {
		q.fail(name, "a number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
	return n
}

// place is the place of an entry in a log; 0 without the parameter.
func (q *queryReader) place(name string) uint64 {
	if !q.values.Has(name) {
		return 0
	}
	n, err := strconv.ParseUint(q.values.Get(name), 10, 64)
	if err != nil {
		q.fail(name, "the number of an entry")
	}
	return n
}

func (q *queryReader) flag(name string) bool {
	if !q.values.Has(name) {
		return false
	}
	on, err := strconv.ParseBool(q.values.Get(name))
	if err != nil {
		q.fail(name, "true or false")
	}
	return on
}

func (q *queryReader) duration(name string, most time.Duration) time.Duration {
	if !q.values.Has(name) {
		return 0
	}
	d, err := time.ParseDuration(q.values.Get(name))
	if err != nil || d < 0 || d > most {
		q.fail(name, "a duration of at most "+most.String()+", such as 30s")
	}
	return d
}

// time is a moment as RFC 3339, or so long ago (36h).
func (q *queryReader) time(name string) string {
	text := q.values.Get(name)
	if text == "" {
		return ""
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago).UTC().Format(time.RFC3339)
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		q.fail(name, "a time such as 2026-11-24T08:00:00Z, or a duration such as 36h")
	}
	return text
}

func (q *queryReader) oneOf(name string, words ...string) string {
	text := q.values.Get(name)
	if text == "" {
		return ""
	}
	all := ""
	for _, w := range words {
		if w == text {
			return text
		}
		all += " " + w
	}
	q.fail(name, "one of"+all)
	return ""
}

// accept refuses the request if a parameter is malformed, unknown or given twice.
func (q *queryReader) accept(w http.ResponseWriter, known ...string) bool {
	for name, given := range q.values {
		found := false
		for _, k := range known {
			found = found || k == name
		}
		if !found && q.bad == "" {
			q.bad = "there is no parameter " + quoteShort(name)
		}
		if found && len(given) > 1 && q.bad == "" {
			q.bad = "the parameter " + name + " is given twice"
		}
	}
	if q.bad != "" {
		refuse(w, http.StatusBadRequest, q.bad, "docs/http.md lists the parameters")
		return false
	}
	return true
}
