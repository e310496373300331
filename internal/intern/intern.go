// Package intern keeps one copy of each long text that many runs have in common, such as the system prompt of an agent
// file and the descriptions of its tools. Each run decodes them out of its own log.
package intern

import "unique"

// BytesMin is the shortest text that is shared: looking up a shorter one costs more than its copy.
const BytesMin = 64

// Text returns the text, as the one copy that all callers share while any of them holds it.
func Text(s string) string {
	if len(s) < BytesMin {
		return s
	}
	return unique.Make(s).Value()
}
