// Package agentfile reads agent definitions: Markdown files with YAML front
// matter, in the form that other agent tools already use. The body is the
// system prompt; all keys that are troupe's alone are below the one key x-troupe.
//
// A file that another tool accepts is accepted here: unknown keys become
// notes. A known key with a value of the wrong type is an error, because
// ignoring it would give the agent other limits than its author wrote.
package agentfile

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/toolset/command"
)

// Limits of one file.
const (
	FileBytesMax        = 1 << 20
	frontMatterBytesMax = 128 << 10
	depthMax            = 32 // of nested YAML
	problemsMax         = 20 // reported for one file
)

// Errors. A message names the file, the line, and what to write instead.
var (
	ErrTooLarge    = errors.New("agentfile: too large")
	ErrFrontMatter = errors.New("agentfile: bad front matter")
	// errNoFrontMatter is the error for a Markdown file that is not an agent definition.
	errNoFrontMatter = errors.New("agentfile: no front matter")
	ErrField         = errors.New("agentfile: bad field")
)

// Definition is one agent as its file describes it. A field has its zero value if the file
// does not set it.
type Definition struct {
	Path        string // of the file
	Digest      string // of its bytes, see Digest; "" for one that was made in Go
	Name        string // [a-z0-9_-]{1,64}; default: the file's name without .md
	Description string
	Prompt      string // the body, without leading and trailing blank lines

	// Tools are the tools that the agent may use: nil for all that its parent has, empty for
	// none.
	Tools           []ToolRef
	DisallowedTools []ToolRef
	Model           string // "" and "inherit" both come as ""
	PermissionMode  spec.PermissionMode
	// Permissions are the rules below x-troupe; see OwnPermissions.
	Permissions spec.Permissions
	// Untrusted: anyone may have written the file, so its permissions only take trust away; see WithoutTrust.
	Untrusted bool
	MaxTurns  int
	Skills    []string
	// Memory is agentmemory.User or agentmemory.Project: which notes the agent keeps beyond a run; "": none.
	Memory     string
	MCPServers []MCPServer
	Effort     string
	Disabled   bool // Load leaves it out
	// At is the line of each key of the front matter; nil for one that was made in Go.
	At map[string]int

	Budget    Budget
	Delegates []string // names of agents it may call; nil: not said, empty: none
	Handoffs  []string // names of agents to which it may hand off its conversation
	// Charges is what is charged for its delegates of other programs, in US dollars, by name or pattern: see ChargeFor.
	Charges     map[string]float64
	Timeout     time.Duration
	ParkTimeout time.Duration // of the runs that begin with it
	Fallback    []string      // models, "provider/model", tried in this order
	Temperature *float64
	Placement   Placement
	// OutputSchema is a path relative to the file, or JSON text that begins with "{".
	OutputSchema string
	Export       bool
	// Policy is JSON text; the supervisor's package reads it.
	Policy string
	// LoopOptions are the loop options that differ from the run's; models in them have only
	// names.
	LoopOptions spec.LoopOptions
	// Constraints and Criteria are sentences that its answers must satisfy, and FailIf are sentences that must not
	// hold. They add to those of the run.
	Constraints, Criteria, FailIf []string
	// Commands are tools of its own. The caller sets Dir and Env.
	Commands []command.Config

	// Limits are those that have a name of their own: see spec.NamedLimits.
	Limits spec.Limits

	// Hooks are the agent's own hooks, by hook point.
	Hooks []spec.Hook

	// Other holds known keys that troupe keeps and does not act on:
	// background, color and the like.
	Other map[string]any
}

// Budget limits an agent. Zero: no limit of its own.
type Budget struct {
	Tokens int64
	USD    float64
	Share  float64 // of the run's budget, above 0 up to 1
}

// Placement says which nodes may run an agent.
type Placement struct {
	Pool string
}

// MCPServer is a server that is named, or defined in the file.
type MCPServer struct {
	Name   string
	Config map[string]any // nil: by its name in .mcp.json
}

// Note is a remark for the author of a file that stops nothing.
type Note struct {
	Path string
	Line int // 0: the file as a whole
	Text string
	// Hidden is the agent of a file that is not used, because the file By has the same name and goes
	// before it.
	Hidden, By string
	// Misspelled: the note is about a name that is probably that of a tool, and is not. Names that are like none may be
	// tools of other programs that read the file, too.
	Misspelled bool
}

func (n Note) String() string {
	if n.Line == 0 {
		return n.Path + ": " + n.Text
	}
	return fmt.Sprintf("%s:%d: %s", n.Path, n.Line, n.Text)
}

var fence = lazyregexp.New(`^---[ \t]*\r?$`)

// Parse parses one file. path is used for messages and for the default name. On error the
// Definition holds the parts that could be read.
func Parse(path string, data []byte) (Definition, []Note, error) {
	def := Definition{Path: path}
	if len(data) > FileBytesMax {
		return def, nil, &Problem{Path: path, Err: fmt.Errorf("%w: it has %d bytes, at most %d are read; move reference text to a skill", ErrTooLarge, len(data), FileBytesMax)}
	}
	front, body, err := cutFrontMatter(data)
	if err != nil {
		return def, nil, &Problem{Path: path, Err: err}
	}
	d := newDecoder(path, &def)
	def.Prompt = d.decodePrompt(body)
	root, err := d.parseFrontMatter(front)
	if err != nil {
		def.Name = fileName(path)
		return def, d.notes, err
	}
	d.readFields(root, "", topFields)
	def.At = d.lines
	definitionCheck{&d.fileReport, &def, d.lines}.complete()
	return def, d.notes, errors.Join(d.problems...)
}

// cutFrontMatter separates the front matter of a file that may begin with a mark.
func cutFrontMatter(data []byte) (front, body []byte, err error) {
	if isUTF16(data) {
		return nil, nil, fmt.Errorf("%w: it is UTF-16; save it as UTF-8", ErrFrontMatter)
	}
	return splitFrontMatter(bytes.TrimPrefix(data, []byte("\uFEFF")))
}

// splitFrontMatter separates the front matter, which must begin in the first line.
func splitFrontMatter(data []byte) (front, body []byte, err error) {
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if !fence.Match(first) {
		return nil, nil, fmt.Errorf("%w: the first line must be ---", errNoFrontMatter)
	}
	for at := 0; at < len(rest); {
		line := rest[at:]
		end := bytes.IndexByte(line, '\n')
		if end >= 0 {
			line = line[:end]
		} else {
			end = len(line)
		}
		if fence.Match(line) {
			if at > frontMatterBytesMax {
				return nil, nil, fmt.Errorf("%w: the front matter is %d bytes, at most %d are read", ErrTooLarge, at, frontMatterBytesMax)
			}
			return rest[:at], rest[min(at+end+1, len(rest)):], nil
		}
		at += end + 1
	}
	return nil, nil, fmt.Errorf("%w: it is not closed; end it with a line ---", ErrFrontMatter)
}

// decodePrompt is the body as text.
func (d *decoder) decodePrompt(body []byte) string {
	text := strings.Trim(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n")
	if clean := strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"); clean != text {
		d.addNote(0, "the body has bytes that are no text; they are shown as \uFFFD")
		return clean
	}
	return text
}

// fileName returns the name of an agent whose file does not set one.
func fileName(path string) string {
	stem := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), ".agent")
	return strings.ToLower(strings.ReplaceAll(stem, " ", "-"))
}

var improper = lazyregexp.New(`[^a-z0-9_-]+`)

// sanitizeName returns the nearest allowed name, "" if there is none.
func sanitizeName(name string) string {
	name = strings.Trim(improper.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return name[:min(len(name), 64)]
}
