package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/settings"
	"github.com/troupe-run/troupe/supervisor"
)

const mannersHint = "see docs/manners.md"

// wanted is what a request says about how the loops behave, by names: its
// flags go over its manners.
func wanted(r client.RunRequest) (agent.Manners, error) {
	var m agent.Manners
	if r.Manners != nil {
		m = *r.Manners
	}
	if len(m.Hooks) > 0 || m.Dynamic != "" {
		return m, bad("write them into an agent file", "hooks and prompts do not come with a request")
	}
	if r.Fallback != nil {
		m.Fallbacks = nil
		for _, name := range r.Fallback {
			m.Fallbacks = append(m.Fallbacks, agent.Model{Name: name})
		}
	}
	for _, text := range r.RequireTool {
		m.Require.Evidence = append(slices.Clip(m.Require.Evidence), agentfile.Evidence(text))
	}
	if len(r.JSONSchema) > 0 {
		m.Require.Schema = string(r.JSONSchema)
	}
	if r.UseTokens != 0 {
		m.Continue.Tokens = r.UseTokens
	}
	if err := m.Validate(); err != nil {
		return m, bad(mannersHint, "%s", strings.TrimPrefix(err.Error(), agent.ErrManners.Error()+": "))
	}
	return m.Filled(), nil
}

// routes finds the models that manners name: their prices and windows are the
// node's to say. The choices are those of the fallbacks.
func (h *Host) routes(m agent.Manners, base agent.Model, unpriced []string) (agent.Manners, []pick.Choice, error) {
	find := func(what, name string) (agent.Model, pick.Choice, error) {
		if name == "" {
			return base, pick.Choice{}, fmt.Errorf("%s: no model is named", what)
		}
		c, err := h.models.choose(context.Background(), name)
		if err != nil {
			return base, c, fmt.Errorf("%s %q: %w", what, name, err)
		}
		return along(base, c, unpriced), c, nil
	}
	var chain []pick.Choice
	for i, f := range m.Fallbacks {
		found, c, err := find("fallback", f.Name)
		if err != nil {
			return m, nil, err
		}
		if i == 0 {
			m.Fallbacks = slices.Clone(m.Fallbacks)
		}
		m.Fallbacks[i], chain = found, append(chain, c)
	}
	if m.Context.Model != nil {
		found, _, err := find("context.model", m.Context.Model.Name)
		if err != nil {
			return m, nil, err
		}
		m.Context.Model = &found
	}
	return m, chain, nil
}

// along is another model with the wishes of the first. The named ones may be
// called without a price.
func along(base agent.Model, c pick.Choice, unpriced []string) agent.Model {
	base.Name, base.Window, base.Price, base.Output, base.Frame = c.Name(), c.Window, c.Price, c.MaxOutput, c.Frame
	base.Price.Allowed = !c.Price.Known && slices.Contains(unpriced, c.Name())
	return base
}

// behaves is how the loop of an agent file's agent behaves where it is not as
// the run says.
func (h *Host) behaves(o *supervisor.Opened, def *supervisor.Definition, d agentfile.Definition, a *client.RunAccepted) error {
	m := d.Manners.Filled()
	for _, name := range d.Fallback {
		m.Fallbacks = append(m.Fallbacks, agent.Model{Name: name})
	}
	base := o.Model
	if def.Model != nil {
		base = *def.Model
	}
	m, _, err := h.routes(m, base, o.Unpriced)
	if err != nil {
		return badModel(err, "change "+d.Path, "agent %s: %v", d.Name, err)
	}
	m = affordable(m, max(o.Limits.Nano, def.Limits.Nano), d.Path+": fallback ", a)
	before := def.Manners
	def.Manners = m
	def.Manners.Hooks, def.Manners.Dynamic = before.Hooks, before.Dynamic
	if m.Context.Model == nil {
		def.Manners.Context.Model = before.Context.Model
	}
	return nil
}

// affordable leaves out the models that a limit in money cannot cover, because
// nobody knows what they cost.
func affordable(m agent.Manners, nano int64, where string, a *client.RunAccepted) agent.Manners {
	unknown := func(f agent.Model) bool {
		if nano == 0 || f.Price.Covered() {
			return false
		}
		a.Notes = append(a.Notes, fmt.Sprintf("%s%s is left out: its price is unknown, and there is a limit in money; --allow-unpriced %s lets it be called", where, f.Name, f.Name))
		return true
	}
	m.Fallbacks = slices.DeleteFunc(slices.Clone(m.Fallbacks), unknown)
	if m.Context.Model != nil && unknown(*m.Context.Model) {
		m.Context.Model = nil
	}
	return m
}

// classify applies what is said about tools from outside of them. The operator
// says what a tool is. The file of the directory that is worked in may come with
// what is in it, from anybody: it can only take trust away, as any hint can.
func (h *Host) classify(o *supervisor.Opened, a *client.RunAccepted) error {
	var local agentfile.Shared
	var err error
	file := filepath.Join(o.Workspace, settings.FileName)
	if o.Workspace != "" {
		if local, err = agentfile.ShareOf(o.Workspace, settings.FileName); err != nil {
			return bad("`troupe config validate` shows what is wrong with the file", "%s: %s", settings.FileName, h.located(err))
		}
	}
	note := func(format string, args ...any) { a.Notes = append(a.Notes, fmt.Sprintf(format, args...)) }
	apply := func(where string, rules []agentfile.ToolRule, set func(model.ToolSpec, agentfile.ToolRule) model.ToolSpec) {
		for _, r := range rules {
			i := slices.IndexFunc(o.Tools, func(s model.ToolSpec) bool { return s.Name == r.Name })
			switch {
			case i < 0:
				note("%s: this run has no tool %s", where, r.Name)
			case slices.Contains(reserved, r.Name) && r.Class != "":
				note("%s: the class of %s is the loop's own", where, r.Name)
			default:
				o.Tools[i] = set(o.Tools[i], r)
			}
		}
	}
	apply("tools of the node", h.cfg.Tools, func(s model.ToolSpec, r agentfile.ToolRule) model.ToolSpec {
		if r.Class != "" {
			s.Class = r.Class
		}
		s.Poll = s.Poll || r.Poll
		return s
	})
	apply(file, local.Tools, func(s model.ToolSpec, r agentfile.ToolRule) model.ToolSpec {
		if r.Class != "" && s.Class.Stricter(r.Class) != r.Class {
			note("%s: %s stays %s; only the user's own %s can trust it more", file, r.Name, s.Class, settings.FileName)
		}
		if r.Allow != nil || r.Private != nil || r.Read != nil || r.Git || r.Timeout != 0 {
			note("%s: what it allows %s is off; only the user's own %s can allow it", file, r.Name, settings.FileName)
		}
		s.Class = s.Class.Stricter(r.Class)
		s.Poll = s.Poll || r.Poll
		return s
	})
	return nil
}

// reachable refuses evidence of tools that nobody in the run has: such a run
// could only end as incomplete.
func reachable(o *supervisor.Opened) error {
	check := func(who string, r agent.Require) error {
		for _, e := range r.Evidence {
			if !slices.ContainsFunc(o.Tools, func(s model.ToolSpec) bool { return s.Name == e.Tool }) {
				names := make([]string, len(o.Tools))
				for i, s := range o.Tools {
					names[i] = s.Name
				}
				hint := "`troupe tools list` shows the tools"
				if near := settings.Near(e.Tool, names); near != "" {
					hint = "did you mean " + near + "?"
				}
				return bad(hint, "%sa result of %s is required, and there is no such tool", who, e.Tool)
			}
		}
		return nil
	}
	for _, d := range o.Definitions {
		if err := check("agent "+d.Name+": ", d.Manners.Require); err != nil {
			return err
		}
	}
	return check("", o.Manners.Require)
}
