package agentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-run/troupe/agent/spec"
)

// claudeHookPrefix begins the names of hooks of a settings.json: a troupe.yaml may have hooks of the same events.
const claudeHookPrefix = "claude."

// claudeHookKeys are the keys of a hook whose meaning troupe knows, or that change nothing of what it decides. One
// with another key, such as a condition, would do something else here than its author wrote.
var claudeHookKeys = strings.Fields("type command timeout prompt model statusMessage async once")

// parseClaudeHooks reads the hooks of a settings.json for all agents.
func parseClaudeHooks(file string, data []byte, err error) ([]spec.Hook, []Note, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("hooks: %w", err)
	}
	root, err := parseJSON(file, data)
	if err != nil {
		return nil, nil, err
	}
	d := newDecoder(file, &Definition{})
	d.shared = true
	for i := 0; i+1 < len(root.Content); i += 2 {
		switch key, value := root.Content[i].Value, root.Content[i+1]; {
		case key == "disableAllHooks" && value.Value == "true":
			return nil, nil, nil
		case key == "hooks" && value.Tag != "!!null":
			readClaudeHooks(d, key, value)
		}
	}
	for i, h := range d.def.Hooks {
		d.def.Hooks[i].Name = claudeHookPrefix + h.Name
	}
	return d.def.Hooks, d.notes, errors.Join(d.problems...)
}

func readClaudeHooks(d *decoder, key string, n *yaml.Node) {
	dropForeignHooks(d, n)
	readHooks(d, key, n)
}

// checkHooks names the hooks that have no effect.
func (r *claudeReader) checkHooks(_ *decoder, key string, n *yaml.Node) {
	d := newDecoder(r.d.path, &Definition{})
	d.shared = true
	readClaudeHooks(d, key, n)
	r.d.problems = append(r.d.problems, d.problems...)
	for _, note := range d.notes {
		text, _, _ := strings.Cut(note.Text, " has no effect here")
		r.out.Without = append(r.out.Without, fmt.Sprintf("%s (line %d)", strings.TrimSuffix(text, " is kept and"), note.Line))
	}
}

// dropForeignHooks removes the hooks that say more than troupe acts on, with a note.
func dropForeignHooks(d *decoder, hooks *yaml.Node) {
	for _, groups := range hooks.Content {
		for _, group := range groups.Content {
			for i := 0; i+1 < len(group.Content); i += 2 {
				if list := group.Content[i+1]; group.Content[i].Value == "hooks" {
					list.Content = slices.DeleteFunc(list.Content, func(hook *yaml.Node) bool { return isForeignHook(d, hook) })
				}
			}
		}
	}
}

func isForeignHook(d *decoder, hook *yaml.Node) bool {
	for i := 0; hook.Kind == yaml.MappingNode && i+1 < len(hook.Content); i += 2 {
		if key := hook.Content[i].Value; !slices.Contains(claudeHookKeys, key) {
			d.addNote(hook.Line+1, "a hook with the key %.40q has no effect here", printable(key))
			return true
		}
	}
	return false
}
