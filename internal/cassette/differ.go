package cassette

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/model"
)

// valueShown is the most bytes that a message shows of a value that differs.
const valueShown = 60

const remedy = "record it again with --record, or replay where nothing has changed"

// mismatchError reports why a request has no answer: the most similar recorded request,
// and where the two first differ.
func (p *Player) mismatchError(a askedRequest) error {
	refuse := func(format string, args ...any) error {
		return &model.Error{Class: model.Misconfigured, Unbilled: true, Message: "replay: " + fmt.Sprintf(format, args...) + "; " + remedy}
	}
	var same []string
	var near *tapedExchange
	most := -1
	for _, t := range p.all {
		switch {
		case t.asked.key == a.key:
			same = append(same, t.file)
		case t.asked.to != a.to:
		default:
			n := commonPrefix(t.asked.text, a.text)
			if !t.played {
				n += len(a.text) // one that is still waited for is likelier meant
			}
			if n > most {
				near, most = t, n
			}
		}
	}
	switch {
	case len(same) > 0:
		return refuse("the request was recorded %d times (%s), and all of it has been played", len(same), clip.Marked(strings.Join(same, ", "), valueShown, "…"))
	case near == nil:
		return refuse("%s has no %s", p.dir, clip.Marked(a.to, valueShown, "…"))
	}
	path, was, is := firstDifference("$", near.asked.parsed, a.parsed)
	if path == "" { // not JSON
		path, was, is = "the body", near.asked.text, a.text
		was, is = showDifference(was, is)
	}
	return refuse("the request differs from the nearest recorded one, %s, at %s: recorded %s, now %s", near.file, path, was, is)
}

// commonPrefix is how many bytes two texts begin with alike.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

var plainKey = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// firstDifference finds the first place where two JSON values differ, and shows both;
// path is "" if there is none.
func firstDifference(at string, was, is any) (path, old, now string) {
	switch a := was.(type) {
	case map[string]any:
		b, ok := is.(map[string]any)
		if !ok {
			break
		}
		keys := slices.Sorted(maps.Keys(a))
		for k := range b {
			if _, ok := a[k]; !ok {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			x, inA := a[k]
			y, inB := b[k]
			step := at + "." + k
			if !plainKey.MatchString(k) {
				step = fmt.Sprintf("%s[%q]", at, clip.Marked(k, valueShown, "…"))
			}
			switch {
			case !inA:
				return step, "nothing", shownValue(y)
			case !inB:
				return step, shownValue(x), "nothing"
			}
			if path, old, now := firstDifference(step, x, y); path != "" {
				return path, old, now
			}
		}
		return "", "", ""
	case []any:
		b, ok := is.([]any)
		if !ok {
			break
		}
		for i := range max(len(a), len(b)) {
			step := fmt.Sprintf("%s[%d]", at, i)
			switch {
			case i >= len(a):
				return step, "nothing", shownValue(b[i])
			case i >= len(b):
				return step, shownValue(a[i]), "nothing"
			}
			if path, old, now := firstDifference(step, a[i], b[i]); path != "" {
				return path, old, now
			}
		}
		return "", "", ""
	case string:
		if b, ok := is.(string); ok {
			if a == b {
				return "", "", ""
			}
			old, now := showDifference(a, b)
			return at, old, now
		}
	}
	if was == is {
		return "", "", ""
	}
	return at, shownValue(was), shownValue(is)
}

// shownValue is the beginning of a value.
func shownValue(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return clip.Marked(string(raw), valueShown, "…")
}

// showDifference shows two texts where they begin to differ.
func showDifference(a, b string) (old, now string) {
	at := commonPrefix(a, b)
	part := func(s string) string {
		from := max(0, at-valueShown/3)
		s = strings.ToValidUTF8(s[from:], "")
		if s = clip.Marked(s, valueShown, "…"); from > 0 {
			s = "…" + s
		}
		return fmt.Sprintf("%q", s)
	}
	return part(a), part(b)
}
