// Package permission decides by rules and modes which calls of an agent run, which wait for a person and
// which never run. It is pure: Decide is a function of the rules and the call. What only a node can know,
// such as whether a sandbox confines a command there, is left to it: see AllowConfined.
package permission

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/troupe-run/troupe/internal/permission/rule"
	"github.com/troupe-run/troupe/internal/toolname"
)

// ErrRule is the error of a text that is no rule.
var ErrRule = errors.New("not a permission rule")

// Tools whose rules take a pattern.
const (
	shellTool    = "shell"
	webTool      = "http_get"
	delegateTool = toolname.Delegate
	handoffTool  = toolname.Handoff
	skillTool    = "skill"
	showTool     = "git_show"
)

// Families of tools. A rule about one write tool is about both. A rule about read_file is about all read tools.
// ParseGuard turns a pattern for any read tool into one for read_file.
var (
	// WriteTools write files of the directory.
	WriteTools = []string{"write_file", "edit_file"}
	// ReadTools read files of the directory.
	ReadTools = []string{"read_file", "list_dir", "grep", "glob", "git_log", "git_show", "git_blame", "git_numstat"}
)

// ruleBytesMax bounds one rule.
const ruleBytesMax = 1 << 10

// Rule is a parsed rule.
type Rule struct {
	tool    string // may hold one *
	pattern string // "": the whole tool
	text    string
}

// Parse reads a rule in troupe's names of tools: NAME, or NAME(PATTERN).
func Parse(text string) (Rule, error) {
	text = strings.TrimSpace(text)
	r := Rule{text: text, tool: text}
	if before, after, ok := strings.Cut(text, "("); ok {
		pattern, closed := strings.CutSuffix(after, ")")
		if !closed {
			return r, fmt.Errorf("%w: %.80q: the parenthesis is not closed", ErrRule, text)
		}
		r.tool, r.pattern = strings.TrimSpace(before), strings.TrimSpace(pattern)
		if r.pattern == "" {
			return r, fmt.Errorf("%w: %.80q: the parentheses are empty; use the name alone for the whole tool", ErrRule, text)
		}
		if r.pattern == "*" {
			r.pattern = ""
		}
	}
	switch {
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return r, fmt.Errorf("%w: %.80q: it has a control character", ErrRule, text)
	case len(text) > ruleBytesMax:
		return r, fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrRule, len(text), ruleBytesMax)
	case r.tool == "" || strings.ContainsFunc(r.tool, isNoNameRune):
		return r, fmt.Errorf("%w: %.80q: write TOOL or TOOL(PATTERN), such as shell(git log:*)", ErrRule, text)
	case strings.Count(r.tool, "*") > 1:
		return r, fmt.Errorf("%w: %.80q: the name of a tool may have one *", ErrRule, text)
	}
	if err := r.checkPattern(); err != nil {
		return r, fmt.Errorf("%w: %.80q: %w", ErrRule, text, err)
	}
	return r, nil
}

// ParseAllow is Parse for a rule that allows: a * in its name must follow the name of an MCP server, so
// that no rule allows tools that its author did not know.
func ParseAllow(text string) (Rule, error) {
	r, err := Parse(text)
	if server, _, ok := strings.Cut(r.tool, "*"); err == nil && ok && (!strings.HasPrefix(server, toolname.MCPPrefix) || strings.Count(server, "__") < 2) {
		return r, fmt.Errorf("%w: %.80q: a rule that allows may have a * only after mcp__SERVER__", ErrRule, text)
	}
	return r, err
}

// ParseGuard is Parse for a rule that denies or asks: files that one read tool must not reach are kept from
// all of them, because a search of a directory above would find them, too.
func ParseGuard(text string) (Rule, error) {
	r, err := Parse(text)
	if err == nil && r.pattern != "" && slices.Contains(ReadTools, r.tool) {
		r.tool = "read_file"
	}
	return r, err
}

func isNoNameRune(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	return !letter && !strings.ContainsRune("_-.*/", c)
}

func (r Rule) checkPattern() error {
	switch {
	case r.pattern == "":
		return nil
	case r.tool == shellTool:
		return rule.Check(r.pattern)
	case r.tool == webTool:
		return checkDomain(r.pattern)
	case slices.Contains(WriteTools, r.tool) || slices.Contains(ReadTools, r.tool):
		return checkPath(r.pattern)
	case r.tool == delegateTool:
		return checkAgentPattern(r.pattern)
	case r.tool == handoffTool:
		return checkHandoffPattern(r.pattern)
	case r.tool == skillTool:
		return checkSkillPattern(r.pattern)
	}
	return errors.New("no tool of this name takes a pattern: check the name, or use it alone")
}

// TakesPattern reports whether rules may be about a part of a tool, by a pattern.
func TakesPattern(tool string) bool {
	return slices.Contains([]string{shellTool, webTool, delegateTool, handoffTool, skillTool}, tool) || slices.Contains(WriteTools, tool) || slices.Contains(ReadTools, tool)
}

func checkPath(pattern string) error {
	if !doublestar.ValidatePattern(pattern) {
		return errors.New("the path pattern is invalid; * matches part of a name, ** any directories")
	}
	if strings.HasPrefix(pattern, "~") {
		return errors.New("~ is not your home directory here; use //home/NAME/… for a path outside the run's directory")
	}
	if slices.Contains(strings.Split(pattern, "/"), "..") {
		return errors.New("the path must not contain ..; use the path that it leads to")
	}
	if clean := path.Clean("/" + pattern); strings.HasPrefix(pattern, "..") || clean == "/" {
		return errors.New("the pattern must name a path below the run's directory; use ** for all of it")
	}
	return nil
}

// Tool returns the tool that the rule names; it may hold a *.
func (r Rule) Tool() string { return r.tool }

// Agent returns the one agent of the run that the rule is about, if it is about delegating or handing off to one.
func (r Rule) Agent() (name string, ok bool) {
	isOne := (r.tool == delegateTool || r.tool == handoffTool) && r.pattern != "" && !strings.ContainsAny(r.pattern, "*/")
	return r.pattern, isOne
}

// IsAbout reports whether a rule with this name of a tool, which may hold a *, is about a tool.
func IsAbout(name, tool string) bool { return Rule{tool: name}.isAbout(tool) }

// isAbout reports whether the rule is about a tool.
func (r Rule) isAbout(tool string) bool {
	if before, after, ok := strings.Cut(r.tool, "*"); ok {
		return len(tool) >= len(before)+len(after) && strings.HasPrefix(tool, before) && strings.HasSuffix(tool, after)
	}
	if r.tool == tool || strings.HasPrefix(r.tool, toolname.MCPPrefix) && strings.Count(r.tool, "__") == 1 && strings.HasPrefix(tool, r.tool+"__") {
		return true
	}
	return isFamily(WriteTools, r.tool, tool) || isFamily(ReadTools, r.tool, tool) && r.tool == "read_file"
}

func isFamily(family []string, a, b string) bool {
	return slices.Contains(family, a) && slices.Contains(family, b)
}
