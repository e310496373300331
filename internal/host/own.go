package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/model/pick"
	"github.com/troupe-run/troupe/supervisor"
	"github.com/troupe-run/troupe/tool"
	"github.com/troupe-run/troupe/tool/kept"
)

// Own is what a program brings that has a node inside of it. Another node that
// takes a run over and lacks one of them halts for a person.
type Own struct {
	// Tools are for every agent whose definition does not leave them out.
	Tools []tool.Tool
	// Agents go over the built-in ones; agent files that a request names go over them.
	Agents []agentfile.Definition
	// Models are clients by PROVIDER/MODEL; they go over the provider of that name.
	Models map[string]model.Client
}

// ErrOwn: what the program brings cannot be used.
var ErrOwn = errors.New("host: not usable")

// complete checks everything and fills in what an agent file would.
func (o Own) complete() (Own, error) {
	set, err := tool.NewSet(o.Tools...)
	if err != nil {
		return o, fmt.Errorf("%w: %w", ErrOwn, err)
	}
	for _, s := range set.Specs() {
		if slices.Contains(reserved, s.Name) || s.Name == kept.Name || agentfile.Builtin(s.Name) {
			return o, fmt.Errorf("%w: the tool %s is built in; give yours another name", ErrOwn, s.Name)
		}
	}
	o.Agents = slices.Clone(o.Agents)
	for i, d := range o.Agents {
		if o.Agents[i], err = agentfile.Define(d); err != nil {
			return o, fmt.Errorf("%w: %w", ErrOwn, err)
		}
		if slices.ContainsFunc(o.Agents[:i], func(other agentfile.Definition) bool { return other.Name == d.Name }) {
			return o, fmt.Errorf("%w: two agents are called %s", ErrOwn, d.Name)
		}
	}
	for name, c := range o.Models {
		if provider, rest, ok := strings.Cut(name, "/"); !ok || provider == "" || rest == "" || c == nil {
			return o, fmt.Errorf("%w: the model %q needs a client and a name like PROVIDER/MODEL", ErrOwn, name)
		}
	}
	return o, nil
}

// tools are those that a task has.
func (o Own) tools(t agent.Task) []tool.Tool {
	return slices.DeleteFunc(slices.Clone(o.Tools), func(own tool.Tool) bool {
		name := own.Spec().Name
		command := slices.ContainsFunc(t.Commands, func(c agent.Command) bool { return c.Name == name })
		return command || !slices.ContainsFunc(t.Tools, func(s model.ToolSpec) bool { return s.Name == name })
	})
}

// model is one that the program brings. Nobody knows what it costs.
func (o Own) model(name string) (pick.Choice, bool) {
	c, ok := o.Models[name]
	if !ok {
		return pick.Choice{}, false
	}
	provider, rest, _ := strings.Cut(name, "/")
	return pick.Choice{Provider: provider, Model: rest, Why: "brought by the program", Client: c, Bound: pick.Documented, Gate: name}, true
}

// bring adds the agents of the program, and tells the built-in coordinator of
// its tools.
func (h *Host) bring(o *supervisor.Opened, a *client.RunAccepted) error {
	for i, d := range o.Definitions {
		if d.Name != coordinatorID {
			continue
		}
		o.Definitions[i].Offer = slices.Clone(d.Offer)
		for _, t := range h.cfg.Own.Tools {
			o.Definitions[i].Offer = append(o.Definitions[i].Offer, t.Spec().Name)
		}
	}
	for _, d := range h.cfg.Own.Agents {
		if err := h.enlist(o, d, a); err != nil {
			return err
		}
	}
	return nil
}
