package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/supervisor"
)

// meant puts PROVIDER/MODEL in the place of what an agent file says otherwise:
// a rank (haiku), or a name without its provider. What means no model here, or
// one that cannot be reached, is the run's own, and said.
func (h *Host) meant(o *supervisor.Opened, d agentfile.Definition, a *client.RunAccepted) agentfile.Definition {
	d.Model = h.meantBy(o, d.Model, a)
	fallback := d.Fallback
	d.Fallback = nil
	for _, name := range fallback {
		if route := h.meantBy(o, name, a); route != "" {
			d.Fallback = append(d.Fallback, route)
		}
	}
	return d
}

func (h *Host) meantBy(o *supervisor.Opened, name string, a *client.RunAccepted) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	note := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(a.Notes, text) {
			a.Notes = append(a.Notes, text)
		}
	}
	provider, _, _ := strings.Cut(o.Model.Name, "/")
	route, ok := pick.Meant(name, provider)
	if ok {
		if _, err := h.models.named(route); err != nil {
			ok = false
		}
	}
	if !ok {
		note("agent files name the model %q, which is not to be had here; the run's model is taken", name)
		return ""
	}
	if pick.Alias(name) {
		note("model %s of agent files is %s", name, route)
	}
	return route
}

// wishes are what an agent's file asks of its model.
func wishes(def *supervisor.Definition, run agent.Model, d agentfile.Definition) {
	if d.Temperature == nil && d.Effort == "" {
		return
	}
	m := run
	if def.Model != nil {
		m = *def.Model
	}
	if d.Temperature != nil {
		m.Temperature = d.Temperature
	}
	switch d.Effort {
	case "low", "medium", "high":
		m.Effort = d.Effort
	case "minimal", "none":
		m.Effort = "low"
	case "xhigh", "max":
		m.Effort = "high"
	}
	def.Model = &m
}

// share is the part of the run's budget that an agent may use up.
func share(l *agent.Limits, run supervisor.Limits, part float64) {
	least := func(own *int64, all int64) {
		if n := int64(part * float64(all)); n > 0 && (*own == 0 || n < *own) {
			*own = n
		}
	}
	least(&l.Tokens, run.Tokens)
	least(&l.Nano, run.Nano)
}

// onlyReads stands in a definition's Deny for all tools that change something,
// until the tools of the run are known; it is the name of none.
const onlyReads = "class: not read"

// settleRights puts tools in the place of names that mean several.
func settleRights(o *supervisor.Opened) {
	all := specNames(o.Tools)
	for i, d := range o.Definitions {
		d.Tools, d.Deny = agentfile.Expand(d.Tools, all), agentfile.Expand(d.Deny, all)
		if k := slices.Index(d.Deny, onlyReads); k >= 0 {
			d.Deny = slices.Delete(slices.Clone(d.Deny), k, k+1)
			for _, s := range o.Tools {
				if s.Class != model.Read && !slices.Contains(reserved, s.Name) {
					d.Deny = append(d.Deny, s.Name)
				}
			}
		}
		o.Definitions[i] = d
	}
}
