// Package intern keeps one copy of each long text that many runs have in common, such as the system prompt of an agent
// file and the descriptions of its tools. Each run decodes them out of its own log.
package intern

import (
	"slices"
	"unique"

	"github.com/troupe-run/troupe/model"
)

// BytesMin is the shortest text that is shared: looking up a shorter one costs more than its copy.
const BytesMin = 64

// Texts holds texts that are shared. A text has one copy as long as the Texts of anybody who shares it is held.
type Texts []unique.Handle[string]

// Share returns the text as the one copy of all who share it, and holds that copy.
func (t *Texts) Share(s string) string {
	if len(s) < BytesMin {
		return s
	}
	h := unique.Make(s)
	*t = append(*t, h)
	return h.Value()
}

// ShareTools returns the tools with descriptions and schemas that are shared.
func (t *Texts) ShareTools(tools []model.ToolSpec) []model.ToolSpec {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Description, tools[i].Schema = t.Share(tools[i].Description), t.Share(tools[i].Schema)
	}
	return tools
}
