package agentfile

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// NumericKeys lists the keys of agent files, each below its own with a dot, whose values are numbers or durations: what
// could be a limit. It asks the readers themselves, so a key that is added is in the list.
func NumericKeys() []string {
	found := map[string]bool{}
	var walk func(within string, known map[string]fieldReader)
	walk = func(within string, known map[string]fieldReader) {
		for name, read := range known {
			key := within + name
			for _, shape := range keyShapes() {
				read(&decoder{def: &Definition{}, lines: map[string]int{}, probe: walk}, key, shape)
			}
			if takesNumbers(read, key) {
				found[key] = true
			}
		}
	}
	walk("", topFields)
	return slices.Sorted(maps.Keys(found))
}

// keyShapes are the shapes of values that have keys of their own: a mapping, a list of mappings, and the hooks of
// Claude Code.
func keyShapes() []*yaml.Node {
	mapping := func(content ...*yaml.Node) *yaml.Node {
		return &yaml.Node{Kind: yaml.MappingNode, Content: content}
	}
	list := func(content ...*yaml.Node) *yaml.Node {
		return &yaml.Node{Kind: yaml.SequenceNode, Content: content}
	}
	return []*yaml.Node{mapping(), list(mapping()), mapping(scalar("Stop", "!!str"), list(mapping())), mapping(scalar("Stop", "!!str"), list(mapping(scalar("hooks", "!!str"), list(mapping()))))}
}

func scalar(value, tag string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value, Tag: tag}
}

// takesNumbers reports whether a reader takes a number or a duration, and not any word.
func takesNumbers(read fieldReader, key string) bool {
	accepts := func(n *yaml.Node) bool {
		d := &decoder{def: &Definition{}, lines: map[string]int{}}
		read(d, key, n)
		return len(d.problems) == 0
	}
	return !accepts(scalar("abc", "!!str")) && (accepts(scalar("2", "!!int")) || accepts(scalar("0.5", "!!float")) || accepts(scalar("2m", "!!str")))
}
