package agentfile

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/loopoptions"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/toolname"
)

// definitionCheck completes a definition that was read, and checks what involves several of its keys or the tools that
// troupe has. The keys themselves stay as the author wrote them.
type definitionCheck struct {
	*fileReport
	def   *Definition
	lines map[string]int // of top-level keys
}

// complete sets defaults and checks rules that involve several keys.
func (c definitionCheck) complete() {
	c.normalizeName()
	if strings.TrimSpace(c.def.Description) == "" {
		c.addProblem(0, "description is missing; say in a sentence when to call this agent")
	}
	if c.def.Prompt == "" {
		c.addNote(0, "the body is empty: the agent has no system prompt of its own")
	}
	c.readToolDelegates()
	c.checkLoopOptions(c.lines[ownKey])
	c.noteKeptKeys()
	c.noteMissingTools()
	c.noteUnenforcedParts()
}

// normalizeName defaults to the file's name, and converts a display name to one that can be part of
// a subject.
func (c definitionCheck) normalizeName() {
	said := c.def.Name
	if said == "" {
		said = fileName(c.path)
	}
	if c.def.Name = said; spec.IsAgentName(said) {
		return
	}
	for _, name := range []string{said, fileName(c.path)} {
		if c.def.Name = sanitizeName(name); c.def.Name != "" {
			c.addNote(c.lines["name"],
				"the agent is called %s here: a name has up to 64 lower-case letters, digits, _ and -", c.def.Name)
			return
		}
	}
	c.def.Name = said
	c.addProblem(c.lines["name"],
		"name is %.80q; write up to 64 lower-case letters, digits, _ and -, such as my-agent", said)
}

// noteKeptKeys adds one note that names the keys that are read and have no effect.
func (c definitionCheck) noteKeptKeys() {
	names := slices.SortedFunc(maps.Keys(c.def.Other), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.lines[a], c.lines[b]), strings.Compare(a, b))
	})
	switch len(names) {
	case 0:
	case 1:
		c.addNote(c.lines[names[0]], "%s is kept and has no effect here", names[0])
	default:
		c.addNote(c.lines[names[0]], "%s are kept and have no effect here", strings.Join(names, ", "))
	}
}

// noteMissingTools adds notes about the tools that troupe does not have: those that other programs
// have, and unknown names.
func (c definitionCheck) noteMissingTools() {
	own := map[string]bool{}
	for _, c := range c.def.Commands {
		own[c.Name] = true
	}
	var foreign []string
	for _, ref := range slices.Concat(c.def.Tools, c.def.DisallowedTools) {
		switch {
		case LacksParenthesis(ref.Name):
			c.addNote(c.lines["tools"], "the \")\" of %.80q is missing: it names no tool", ref.Name)
		case ref.isKnown() || own[ref.Name]:
		case ref.isForeign():
			if !slices.Contains(foreign, ref.Name) {
				foreign = append(foreign, ref.Name)
			}
		case c.hasRoomForNotes():
			similar := SuggestTool(ref.Name)
			c.addNote(c.lines["tools"], "no tool is called %s%s", ref.Name, similar)
			c.notes[len(c.notes)-1].Misspelled = similar != ""
		}
	}
	if len(foreign) > 0 {
		c.addNote(c.lines["tools"], "troupe has no %s; the agent goes without", strings.Join(foreign, ", "))
	}
}

// noteUnenforcedParts adds notes about tools that are named only in part, and about keys that are
// read and have no effect, or another effect than the one written.
func (c definitionCheck) noteUnenforcedParts() {
	for _, r := range c.def.Tools {
		if whole := (ToolRef{Name: r.Name}); r.isPartial() && c.hasRoomForNotes() && !slices.Contains(c.def.Tools, whole) && !r.isForeign() {
			c.addNote(c.lines["tools"], "%s(%s): the pattern cannot be read, so the agent goes without %s; the name alone gives all of it", r.Name, r.Args, r.Name)
		}
	}
	for _, r := range c.def.DisallowedTools {
		if strings.ContainsAny(r.Name, "()\"'[]{} ") { // it would deny nothing
			c.addProblem(c.lines["disallowedTools"], "disallowedTools: %.80q is neither a tool nor TOOL(PATTERN)", r.String())
		}
		if r.Args != "" && r.Args != "*" && !r.deniesPart() {
			c.rejectPattern(r)
		}
	}
	switch c.def.Effort {
	case "", "low", "medium", "high":
	case "minimal", "none":
		c.addNote(c.lines["effort"], "effort %s is low here", c.def.Effort)
	case "xhigh", "max":
		c.addNote(c.lines["effort"], "effort %s is high here", c.def.Effort)
	default:
		c.addNote(c.lines["effort"], "effort %.40q is not low, medium or high; the run's effort is used", c.def.Effort)
	}
}

// rejectPattern reports a pattern in disallowedTools that cannot be read. Of a tool that takes patterns it is an
// error: its author wanted to deny a part of a family of tools, such as all that write, and the name alone is only
// one of them. Any other tool is denied as a whole.
func (c definitionCheck) rejectPattern(r ToolRef) {
	if _, err := permission.Parse(r.String()); permission.TakesPattern(r.Name) {
		c.addProblem(c.lines["disallowedTools"], "disallowedTools: %v", err)
		return
	}
	c.addNote(c.lines["disallowedTools"],
		"%s(%s): this tool takes no pattern, so the agent gets no %s at all", r.Name, r.Args, r.Name)
}

// readToolDelegates reads the agents that are in the list of tools: Agent(a, b).
func (c definitionCheck) readToolDelegates() {
	if c.def.Delegates != nil {
		return
	}
	var names []string
	for _, ref := range c.def.Tools {
		if ref.Name != toolname.Delegate {
			continue
		}
		if ref.Args == "" {
			return // any
		}
		for _, name := range splitCommas(ref.Args) {
			names = append(names, agentName(name))
		}
	}
	c.def.Delegates = names
}

// checkLoopOptions checks rules that involve several keys.
func (c definitionCheck) checkLoopOptions(line int) {
	if len(c.problems) > 0 {
		return
	}
	m := c.def.LoopOptions
	if strings.HasPrefix(c.def.OutputSchema, "{") {
		m.Require.Schema = c.def.OutputSchema
	}
	if err := loopoptions.Check(m); err != nil {
		c.addProblem(line, "%s", strings.TrimPrefix(err.Error(), loopoptions.ErrInvalid.Error()+": "))
	}
	if n := len(c.def.Fallback); n > spec.FallbacksMax {
		c.addProblem(line, "fallback names %d models, at most %d are tried", n, spec.FallbacksMax)
	}
}
