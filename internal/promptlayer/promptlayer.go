// Package promptlayer composes the system prompt of an agent from the layers of its task.
package promptlayer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
)

// The layers that an agent's definition makes, with their priorities. Text that stays the same comes first, so
// that providers can cache it.
const (
	systemLayer  = "system"  // Task.System
	contextLayer = "context" // LoopOptions.Dynamic: the date, the directory

	systemPriority  = 10
	layerPriority   = 50  // of a layer that names none
	contextPriority = 100 // from here on, providers cache nothing
)

// priorities are those of layers that take the place of a part of the definition and name none.
var priorities = map[string]int{systemLayer: systemPriority, contextLayer: contextPriority}

// Limits of layers.
const (
	layersMax      = 32       // of one agent, with those that it inherits
	layersBytesMax = 32 << 10 // of their texts
	layerNameMax   = 64
	layerOwnerMax  = 200 // bytes
)

// Validate returns an error if a layer is invalid.
func Validate(l spec.Layer) error {
	switch {
	case l.Name == "" || len(l.Name) > layerNameMax || strings.ContainsFunc(l.Name, isForbiddenInName):
		return fmt.Errorf("layer %.80q: a name has 1 to %d letters, digits, '.', '_' and '-'", l.Name, layerNameMax)
	case l.Priority < 0 || l.Priority > 1000:
		return fmt.Errorf("layer %s: its priority is %d, and may be 0 to 1000", l.Name, l.Priority)
	case len(l.Owner) > layerOwnerMax:
		return fmt.Errorf("layer %s: its owner has %d bytes, and may have %d", l.Name, len(l.Owner), layerOwnerMax)
	case len(l.Text) > layersBytesMax:
		return fmt.Errorf("layer %s: its text has %d bytes, and may have %d", l.Name, len(l.Text), layersBytesMax)
	case l.Below && (l.Name == systemLayer || l.Name == contextLayer):
		return fmt.Errorf("layer %s: each agent has its own, so that agents below inherit none; choose another name", l.Name)
	}
	return nil
}

func isForbiddenInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
}

// Apply returns layers in which each of the changes takes the place of the layer of its name and agent. A change
// without text removes that layer.
func Apply(layers, changes []spec.Layer) []spec.Layer {
	layers = slices.Clone(layers)
	for _, c := range changes {
		same := func(l spec.Layer) bool { return l.Name == c.Name && l.Agent == c.Agent }
		if c.Text == "" {
			layers = slices.DeleteFunc(layers, same)
			continue
		}
		if i := slices.IndexFunc(layers, same); i >= 0 {
			layers[i] = c
		} else {
			layers = append(layers, c)
		}
	}
	return layers
}

// Check reports layers that are more than an agent may have.
func Check(layers []spec.Layer) error {
	size := 0
	for _, l := range layers {
		size += len(l.Text)
	}
	if len(layers) > layersMax || size > layersBytesMax {
		return fmt.Errorf("an agent may have %d layers of together %d bytes: these are %d layers of %d bytes; remove one, or shorten it", layersMax, layersBytesMax, len(layers), size)
	}
	return nil
}

// Compose makes the system prompt of an agent: the part that stays the same, and the part after
// it, from priority 100 on.
func Compose(t spec.Task) (stable, volatile string) {
	if len(t.Layers) == 0 {
		return t.System, t.LoopOptions.Dynamic
	}
	var before, after []string
	for _, l := range Of(t) {
		if l.Priority < contextPriority {
			before = append(before, l.Text)
		} else {
			after = append(after, l.Text)
		}
	}
	return strings.Join(before, "\n\n"), strings.Join(after, "\n\n")
}

// Of returns the layers that an agent's system prompt consists of, in their order. The layers of
// agents above come before the agent's definition, and those that were set for the agent come after it: of a
// name, the last one counts.
func Of(t spec.Task) []spec.Layer {
	depth := func(l spec.Layer) int { return len(l.Agent.Above()) }
	layers := slices.Clone(t.Layers)
	slices.SortStableFunc(layers, func(a, b spec.Layer) int { return cmp.Compare(depth(a), depth(b)) })
	at := slices.IndexFunc(layers, func(l spec.Layer) bool { return l.Agent == t.ID })
	if at < 0 {
		at = len(layers)
	}
	layers = slices.Insert(layers, at, spec.Layer{Name: systemLayer, Text: t.System, Priority: systemPriority, Owner: t.Name, Agent: t.ID},
		spec.Layer{Name: contextLayer, Text: t.LoopOptions.Dynamic, Priority: contextPriority, Owner: t.Name, Agent: t.ID})
	var sent []spec.Layer
	for i, l := range layers {
		replaced := func(later spec.Layer) bool { return later.Name == l.Name && !later.Merge }
		l.Priority = cmp.Or(l.Priority, priorities[l.Name], layerPriority)
		if l.Text != "" && !slices.ContainsFunc(layers[i+1:], replaced) {
			sent = append(sent, l)
		}
	}
	slices.SortStableFunc(sent, func(a, b spec.Layer) int { return cmp.Compare(a.Priority, b.Priority) })
	return sent
}
