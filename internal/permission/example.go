package permission

import (
	"encoding/json"
	"slices"
	"strings"
)

// ExampleOf returns a call that a rule which allows matches; ok is false if none is known.
func ExampleOf(text string) (c Call, ok bool) {
	r, err := ParseAllow(text)
	if err != nil {
		return c, false
	}
	plain := strings.NewReplacer("**", "x", "*", "x", "?", "x").Replace(r.pattern)
	key, value := "", ""
	switch {
	case r.tool == shellTool:
		key, value = "command", strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(r.pattern, ":*"), " *"), " ")
		if value = strings.ReplaceAll(value, "*", "x"); value == "" {
			value = "make"
		}
	case slices.Contains(WriteTools, r.tool), slices.Contains(ReadTools, r.tool):
		key, value = "path", strings.TrimPrefix(strings.TrimPrefix(plain, "./"), "/")
		if strings.HasPrefix(value, "/") || strings.ContainsAny(value, `[]{}\`) {
			return c, false
		}
	case r.tool == webTool:
		key, value = "url", "https://"+strings.TrimPrefix(plain, domainWord)+"/"
	case r.tool == delegateTool, r.tool == handoffTool:
		key, value = "agent", plain
	case r.tool == skillTool:
		key, value = "name", plain
	}
	c.Tool, c.Args = strings.ReplaceAll(r.tool, "*", "x"), "{}"
	if key == "" {
		return c, true
	}
	raw, err := json.Marshal(map[string]string{key: value})
	c.Args = string(raw)
	return c, err == nil
}
