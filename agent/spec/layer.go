package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Layer is a named part of a system prompt. The parts of a prompt are sent in the order of their priorities: what the
// agent's definition says has 10, the date and the directory have 100.
//
// A layer without text removes the agent's own layer of its name. A layer takes the place of an earlier one of its
// name: of a layer of an agent above, which this agent inherits, and of a part of the agent's definition.
type Layer struct {
	Name     string `msgpack:"n" json:"name"`
	Text     string `msgpack:"t,omitempty" json:"text"`
	Priority int    `msgpack:"p,omitempty" json:"priority"` // 1 to 1000; 0: 50, of system 10 and of context 100
	// Owner is who set it.
	Owner string `msgpack:"o,omitempty" json:"owner,omitempty"`
	// Agent is the agent that it was set for.
	Agent ID `msgpack:"a,omitempty" json:"agent,omitempty"`
	// Below: agents below that agent inherit it.
	Below bool `msgpack:"b,omitempty" json:"below,omitempty"`
	// Merge adds it to the earlier layer of its name, instead of replacing that layer: after it, unless its priority
	// is lower.
	Merge bool `msgpack:"m,omitempty" json:"merge,omitempty"`
}

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
func (l Layer) Validate() error {
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

// WithLayers returns layers in which each of the changes takes the place of the layer of its name and agent. A change
// without text removes that layer.
func WithLayers(layers, changes []Layer) []Layer {
	layers = slices.Clone(layers)
	for _, c := range changes {
		same := func(l Layer) bool { return l.Name == c.Name && l.Agent == c.Agent }
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

// CheckLayers reports layers that are more than an agent may have.
func CheckLayers(layers []Layer) error {
	size := 0
	for _, l := range layers {
		size += len(l.Text)
	}
	if len(layers) > layersMax || size > layersBytesMax {
		return fmt.Errorf("an agent may have %d layers of together %d bytes: these are %d layers of %d bytes; remove one, or shorten it", layersMax, layersBytesMax, len(layers), size)
	}
	return nil
}

// SystemPrompt composes the system prompt of an agent: the part that stays the same, and the part after
// it, from priority 100 on.
func (t Task) SystemPrompt() (stable, volatile string) {
	if len(t.Layers) == 0 {
		return t.System, t.LoopOptions.Dynamic
	}
	var before, after []string
	for _, l := range t.PromptLayers() {
		if l.Priority < contextPriority {
			before = append(before, l.Text)
		} else {
			after = append(after, l.Text)
		}
	}
	return strings.Join(before, "\n\n"), strings.Join(after, "\n\n")
}

// PromptLayers returns the layers that the agent's system prompt consists of, in their order. The layers of
// agents above come before the agent's definition, and those that were set for the agent come after it: of a
// name, the last one counts.
func (t Task) PromptLayers() []Layer {
	depth := func(l Layer) int { return len(l.Agent.Above()) }
	layers := slices.Clone(t.Layers)
	slices.SortStableFunc(layers, func(a, b Layer) int { return cmp.Compare(depth(a), depth(b)) })
	at := slices.IndexFunc(layers, func(l Layer) bool { return l.Agent == t.ID })
	if at < 0 {
		at = len(layers)
	}
	layers = slices.Insert(layers, at, Layer{Name: systemLayer, Text: t.System, Priority: systemPriority, Owner: t.Name, Agent: t.ID},
		Layer{Name: contextLayer, Text: t.LoopOptions.Dynamic, Priority: contextPriority, Owner: t.Name, Agent: t.ID})
	var sent []Layer
	for i, l := range layers {
		replaced := func(later Layer) bool { return later.Name == l.Name && !later.Merge }
		l.Priority = cmp.Or(l.Priority, priorities[l.Name], layerPriority)
		if l.Text != "" && !slices.ContainsFunc(layers[i+1:], replaced) {
			sent = append(sent, l)
		}
	}
	slices.SortStableFunc(sent, func(a, b Layer) int { return cmp.Compare(a.Priority, b.Priority) })
	return sent
}
