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
	Tags     []string
	// Parent names the layer that this one replaces, at its own priority.
	Parent string
	// Merge keeps the parent's content before this one's; otherwise this one replaces it.
	Merge bool
}

// Prompt is a composed system prompt: the parts before and after the breakpoint.
type Prompt struct {
	Stable  string
	Dynamic string
}

// Errors of Compose.
var (
	ErrLayerName  = errors.New("a layer needs a name of its own")
	ErrParent     = errors.New("no such parent")
	ErrCycle      = errors.New("the parents go in a circle")
	ErrSameParent = errors.New("two layers have the same place")
)

// Compose joins the layers that have every given tag, by priority and then by name. It
// leaves out layers without text.
func Compose(layers []Layer, tags ...string) (Prompt, error) {
	byName := map[string]Layer{}
	for _, l := range layers {
		if _, twice := byName[l.Name]; twice || l.Name == "" {
			return Prompt{}, fmt.Errorf("prompt: layer %q: %w", l.Name, ErrLayerName)
		}
		byName[l.Name] = l
	}
	replaced := map[string]string{}
	for _, l := range layers {
		if l.Parent == "" {
			continue
		}
		if _, ok := byName[l.Parent]; !ok {
			return Prompt{}, fmt.Errorf("prompt: layer %q: parent %q: %w", l.Name, l.Parent, ErrParent)
		}
		if other, taken := replaced[l.Parent]; taken {
			return Prompt{}, fmt.Errorf("prompt: layers %q and %q of parent %q: %w", other, l.Name, l.Parent, ErrSameParent)
		}
		replaced[l.Parent] = l.Name
	}
	var shown []Layer
	for _, l := range layers {
		text, err := layerContent(l, byName)
		if err != nil {
			return Prompt{}, err
		}
		_, gone := replaced[l.Name]
		if gone || strings.TrimSpace(text) == "" || !l.hasTags(tags) {
			continue
		}
		l.Content = text
		shown = append(shown, l)
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

func (l Layer) hasTags(tags []string) bool {
	return !slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(l.Tags, t) })
}

// layerContent returns the text of a layer with the texts of the parents that it keeps.
func layerContent(l Layer, byName map[string]Layer) (string, error) {
	parts, chain := []string{l.Content}, []string{l.Name}
	keep := l.Merge
	for l.Parent != "" {
		l = byName[l.Parent]
		if slices.Contains(chain, l.Name) {
			return "", fmt.Errorf("prompt: layers %s: %w", strings.Join(append(chain, l.Name), " → "), ErrCycle)
		}
		chain = append(chain, l.Name)
		if keep {
			parts = append(parts, l.Content)
		}
		keep = keep && l.Merge
	}
	slices.Reverse(parts)
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.TrimSpace(p) == "" })
	return strings.Join(parts, Separator), nil
}
