package permission

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/permission/rule"
	"github.com/troupe-run/troupe/model"
)

// Canonical returns arguments in their canonical form: keys in order, no spaces, numbers as they are
// written. Arguments that are no JSON stay as they are, and so do those that name a key twice: who gets them may take
// the first or the last.
func Canonical(args string) string {
	if repeatsKey(args) {
		return args
	}
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return args
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return args
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// repeatsKey reports whether an object in a JSON text has two values of one key, in whatever case.
func repeatsKey(text string) bool {
	type level struct {
		keys  map[string]bool // nil: a list
		value bool            // the next token is a value
	}
	var open []level
	d := json.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		top := len(open) - 1
		switch t := token.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				if top >= 0 {
					open[top].value = false
				}
				next := level{}
				if t == '{' {
					next.keys = map[string]bool{}
				}
				open = append(open, next)
			default:
				open = open[:top]
			}
			continue
		case string:
			if top >= 0 && open[top].keys != nil && !open[top].value {
				key := strings.ToLower(t)
				if open[top].keys[key] {
					return true
				}
				open[top].keys[key], open[top].value = true, true
				continue
			}
		}
		if top >= 0 {
			open[top].value = false
		}
	}
}

// Digest returns the SHA-256 of a call: of its tool as the model was offered it, and of its canonical
// arguments. An approval is for one digest.
func Digest(t model.ToolSpec, args string) string {
	h := sha256.New()
	for _, part := range []string{t.Name, string(t.Class), t.Description, Canonical(t.Schema), Canonical(args)} {
		_, _ = fmt.Fprintf(h, "%d\n%s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// shownTools are the tools whose arguments Show reads.
var shownTools = []string{shellTool, "edit_file", "write_file", webTool}

// Show describes a call to a person by its arguments: a command as a command, a change as a change,
// other arguments as JSON.
func Show(tool, args string) string {
	var f struct {
		Command, Path, Content, Old, New, URL string
	}
	if slices.Contains(shownTools, tool) {
		_ = json.Unmarshal([]byte(args), &f) // arguments that do not fit are shown as they are
	}
	switch {
	case tool == shellTool && f.Command != "":
		return Visible("$ " + strings.ReplaceAll(f.Command, "\n", "\n  "))
	case tool == "edit_file" && f.Path != "":
		return Visible("edit " + VisibleLine(f.Path) + "\n" + prefixLines("-", f.Old) + prefixLines("+", f.New))
	case tool == "write_file" && f.Path != "":
		return Visible("write " + VisibleLine(f.Path) + "\n" + prefixLines("+", f.Content))
	case tool == webTool && f.URL != "":
		return VisibleLine("get " + f.URL)
	}
	return Visible(tool + " " + Canonical(args))
}

func prefixLines(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+mark) + "\n"
}

// RuleFor returns the rule that allows calls like this one; "" if no rule is as narrow as a person would
// expect: a command must be one simple command.
func RuleFor(c Call) string {
	f := factsOf(c)
	switch {
	case c.Tool == shellTool:
		if text := rule.Fit(f.Command); text != "" {
			return shellTool + "(" + text + ")"
		}
		return ""
	case c.Tool == webTool:
		if host, ok := hostOf(f.URL); ok {
			return webTool + "(" + domainWord + host + ")"
		}
		return ""
	case callsForeign(c):
		if r, err := ParseAllow(delegateTool + "(" + f.Agent + ")"); err == nil && r.pattern == f.Agent && !strings.Contains(f.Agent, "*") {
			return r.text
		}
		return ""
	case isFamily(WriteTools, c.Tool, c.Tool):
		local, ok := localPath(c.Workspace, f.Path)
		if !ok || local == "." || strings.ContainsAny(local, `*?[]{}\()`) {
			return ""
		}
		return "edit_file(/" + local + ")"
	}
	if r, err := ParseAllow(c.Tool); err == nil && r.text == c.Tool {
		return c.Tool
	}
	return ""
}
