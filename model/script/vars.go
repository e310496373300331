package script

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// vars maps each {{name}} to its value in one request.
type vars map[string]string

func newVars(req model.Request, agent string, n int) vars {
	v := vars{"agent": agent, "n": strconv.Itoa(n), "choice": req.Choice, "last": "", "task": "", "user": ""}
	for _, m := range req.Messages {
		switch {
		case m.Tombstone:
		case m.Role == model.User:
			if v["user"] = m.Text; v["task"] == "" {
				v["task"] = m.Text
			}
		case m.Role == model.ToolRole:
			v.results(m.Results)
		}
	}
	return v
}

// results replaces those of an earlier tool message.
func (v vars) results(results []model.ToolResult) {
	for i := 0; ; i++ {
		key := fmt.Sprintf("result.%d", i)
		if _, ok := v[key]; !ok {
			break
		}
		delete(v, key)
	}
	for i, r := range results {
		v[fmt.Sprintf("result.%d", i)], v["last"] = r.Text, r.Text
	}
}

// expand replaces every {{name}} that is known and leaves the others as they
// are. What it puts in is not expanded again.
func (v vars) expand(s string) string {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{{")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		name, after, ok := strings.Cut(rest, "}}")
		value, known := v[strings.TrimSpace(name)]
		if !ok || !known {
			out.WriteString("{{")
			s = rest
			continue
		}
		out.WriteString(value)
		s = after
	}
}

// args renders arguments: a string as it is, a mapping as JSON.
func (v vars) args(a any) string {
	switch a := a.(type) {
	case nil:
		return "{}"
	case string:
		return v.expand(a)
	default:
		var out strings.Builder
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v.inside(a)); err != nil {
			return "{" // a value JSON cannot hold: broken arguments. Parse refuses it earlier.
		}
		return strings.TrimSuffix(out.String(), "\n")
	}
}

// inside expands the strings of a decoded value, on a copy.
func (v vars) inside(a any) any {
	switch a := a.(type) {
	case string:
		return v.expand(a)
	case []any:
		out := make([]any, len(a))
		for i, e := range a {
			out[i] = v.inside(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(a))
		for k, e := range a {
			out[k] = v.inside(e)
		}
		return out
	}
	return a
}
