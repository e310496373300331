package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/internal/schema"
	"github.com/troupe-run/troupe/model"
)

// Set is the tools that an agent has. It never changes and is safe for
// concurrent use.
type Set struct {
	tools map[string]*toolEntry
	specs []model.ToolSpec
	mask  *redact.Masker
}

// toolEntry is a tool with everything that is derived from it.
type toolEntry struct {
	tool   Tool
	spec   model.ToolSpec
	limits Limits
	args   *schema.Schema
	result *schema.Schema // nil: any text
}

// NewSet makes a set. It redacts text in results that looks like a secret; see Masked.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{tools: map[string]*toolEntry{}, mask: redact.New(redact.Config{})}
	for _, t := range tools {
		e, err := compileTool(t)
		if err != nil {
			return nil, err
		}
		if s.tools[e.spec.Name] != nil {
			return nil, fmt.Errorf("%w: %s", ErrDuplicate, e.spec.Name)
		}
		s.tools[e.spec.Name] = e
	}
	s.buildSpecs()
	return s, nil
}

func (s *Set) buildSpecs() {
	s.specs = nil
	for _, name := range slices.Sorted(maps.Keys(s.tools)) {
		s.specs = append(s.specs, s.tools[name].spec)
	}
}

// Masked is the same set with another masker, one that knows exact values.
func (s *Set) Masked(m *redact.Masker) *Set {
	return &Set{tools: s.tools, specs: s.specs, mask: m}
}

// Specs returns what a model reads about the tools, sorted by name. The caller may keep and change it.
func (s *Set) Specs() []model.ToolSpec { return slices.Clone(s.specs) }

var nameForm = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// compileTool checks a tool and fills in its defaults.
func compileTool(t Tool) (*toolEntry, error) {
	if err := toolError(t); err != nil {
		return nil, err
	}
	e := &toolEntry{tool: t, spec: t.Spec()}
	if !nameForm.MatchString(e.spec.Name) {
		return nil, fmt.Errorf("%w: %q", ErrName, e.spec.Name)
	}
	if n := len(e.spec.Description); n > DescriptionBytes {
		return nil, fmt.Errorf("%w: the description of %s is %d bytes, at most %d are allowed", ErrSpec, e.spec.Name, n, DescriptionBytes)
	}
	if !slices.Contains([]model.Class{model.Read, model.Idempotent, model.Effect, model.Irreversible}, e.spec.Class) {
		return nil, fmt.Errorf("%w: %s has the effect class %q; use read, idempotent, effect or irreversible", ErrSpec, e.spec.Name, e.spec.Class)
	}
	if l, ok := t.(interface{ Limits() Limits }); ok {
		e.limits = l.Limits()
	}
	if e.limits.Timeout <= 0 {
		e.limits.Timeout = TimeoutDefault
	}
	if e.limits.Output <= 0 {
		e.limits.Output = OutputBytesMax
	}
	var err error
	if e.args, err = schema.Compile(e.spec.Schema); err != nil {
		return nil, fmt.Errorf("%w: schema of %s: %w", ErrSpec, e.spec.Name, err)
	}
	if kind := e.args.Type(); kind != "object" {
		return nil, fmt.Errorf("%w: the schema of %s must have the type object, not %q", ErrSpec, e.spec.Name, kind)
	}
	if e.limits.Schema != "" {
		if e.result, err = schema.Compile(e.limits.Schema); err != nil {
			return nil, fmt.Errorf("%w: output schema of %s: %w", ErrSpec, e.spec.Name, err)
		}
	}
	return e, nil
}

// checkArgs returns an error that describes invalid arguments.
func (e *toolEntry) checkArgs(args []byte) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return fmt.Errorf("%w: not valid JSON: %w", ErrArgs, err)
	}
	if err := e.args.Validate(v); err != nil {
		return fmt.Errorf("%w: %w", ErrArgs, err)
	}
	return nil
}

// Call runs a tool. Whatever goes wrong is in the Result, as text that a model
// can read: Call itself does not fail, does not panic, and returns at the
// latest AbandonGrace after the tool's timeout or the end of ctx.
func (s *Set) Call(ctx context.Context, name string, c Call) Result {
	e := s.tools[name]
	if e == nil {
		known := slices.Sorted(maps.Keys(s.tools))
		return Result{Text: fmt.Sprintf("unknown tool %.64q; the tools are: %s", name, strings.Join(known, ", ")), Error: true}
	}
	if len(strings.TrimSpace(string(c.Args))) == 0 {
		c.Args = []byte("{}")
	}
	if err := e.checkArgs(c.Args); err != nil {
		return s.finishResult(e, Result{Text: readableError(name, err) + "; the tool did not run", Error: true})
	}
	var changes callChanges
	c.Changed = changes.add
	metrics := callMetrics{next: c.Metric}
	c.Metric = metrics.set
	r := s.finishResult(e, e.runCall(ctx, c))
	r.Changes, r.ChangesLost = changes.close()
	r.Metrics, r.MetricsLost = metrics.close() //mutant:metrics-lost
	return r
}

// callChanges collects what a call changes, until it returns or is abandoned.
type callChanges struct {
	mu     sync.Mutex
	list   []filechange.Change
	lost   string
	closed bool
}

func (c *callChanges) add(list []filechange.Change, lost string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	for _, change := range list {
		switch {
		case len(c.list) >= filechange.ChangesMax:
			lost = fmt.Sprintf("more than %d files were changed", filechange.ChangesMax)
		case len(change.Path) > filechange.PathBytesMax:
			lost = fmt.Sprintf("a path has more than %d bytes", filechange.PathBytesMax)
		default:
			c.list = append(c.list, change)
		}
	}
	if lost != "" {
		c.lost = lost
	}
}

func (c *callChanges) close() ([]filechange.Change, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.list, c.lost
}
