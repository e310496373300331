// Package prompt composes a system prompt from layers: named texts with a priority. Layers
// that stay the same for a whole run come first, and layers that may change come after
// them, so that a provider can cache the first part: the breakpoint is between the two.
package prompt

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Priorities: a layer with a lower one comes earlier. Layers of Dynamic or more come after
// the breakpoint.
const (
	RolePriority        = 10  // who the agent is
	SkillsPriority      = 40  // skills that the agent can load
	MemoryPriority      = 45  // notes of earlier runs
	RulesPriority       = 50  // rules that the agent must follow
	DynamicPriority     = 100 // the breakpoint
	EnvironmentPriority = 110 // where and when it works
)

// Separator separates layers.
const Separator = "\n\n"

// Layer is one text of a system prompt.
type Layer struct {
	Name     string
	Content  string
	Priority int
}

// Prompt is a composed system prompt: the parts before and after the breakpoint.
type Prompt struct {
	Stable  string
	Dynamic string
}

// ErrLayerName says that a layer has no name, or the name of another one.
var ErrLayerName = errors.New("a layer needs a name of its own")

// Compose joins the layers by priority and then by name. It leaves out layers without text.
func Compose(layers []Layer) (Prompt, error) {
	named := map[string]bool{}
	var shown []Layer
	for _, l := range layers {
		if named[l.Name] || l.Name == "" {
			return Prompt{}, fmt.Errorf("prompt: layer %q: %w", l.Name, ErrLayerName)
		}
		named[l.Name] = true
		if strings.TrimSpace(l.Content) != "" {
			shown = append(shown, l)
		}
	}
	slices.SortStableFunc(shown, func(a, b Layer) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), strings.Compare(a.Name, b.Name))
	})
	var p Prompt
	for _, l := range shown {
		part := &p.Stable
		if l.Priority >= DynamicPriority {
			part = &p.Dynamic
		}
		if *part != "" {
			*part += Separator
		}
		*part += l.Content
	}
	return p, nil
}
