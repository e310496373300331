package script

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// replyVars maps each {{name}} to its value in one request.
type replyVars map[string]string

func newVars(req model.Request, agent string, n int) replyVars {
	v := replyVars{"agent": agent, "n": strconv.Itoa(n), "choice": req.Choice, "system": strings.TrimSpace(req.System + "\n\n" + req.Dynamic), "last": "", "task": "", "user": ""}
	for _, m := range req.Messages {
		switch {
		case m.Tombstone:
		case m.Role == model.User:
			if v["user"] = m.Text; v["task"] == "" {
				v["task"] = m.Text
			}
		case m.Role == model.ToolRole:
			v.replaceResults(m.Results)
		}
	}
	return v
}

// replaceResults replaces those of an earlier tool message.
func (v replyVars) replaceResults(results []model.ToolResult) {
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

// expandText replaces every {{name}} that is known and leaves the others as they
// are. What it puts in is not expanded again.
func (v replyVars) expandText(s string) string {
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

// renderArgs renders arguments: a string as it is, a mapping as JSON.
func (v replyVars) renderArgs(a any) string {
	switch a := a.(type) {
	case nil:
		return "{}"
	case string:
		return v.expandText(a)
	default:
		var out strings.Builder
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v.expandValue(a)); err != nil {
			return "{" // a value JSON cannot hold: broken arguments. Parse refuses it earlier.
		}
		return strings.TrimSuffix(out.String(), "\n")
	}
}

// expandValue expands the strings of a decoded value, on a copy.
func (v replyVars) expandValue(a any) any {
	switch a := a.(type) {
	case string:
		return v.expandText(a)
	case []any:
		out := make([]any, len(a))
		for i, e := range a {
			out[i] = v.expandValue(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(a))
		for k, e := range a {
			out[k] = v.expandValue(e)
		}
		return out
	}
	return a
}
