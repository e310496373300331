package schema

import (
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/troupe-run/troupe/internal/clip"
)

// fault explains why a value does not fit a schema. Its text is built on demand: most
// faults belong to alternatives that were not meant.
type fault struct {
	at   *schemaNode
	what func() string // nil: that of the faults within
	in   []*fault
}

// Error returns the text, cut at TextBytesMax.
func (f *fault) Error() string {
	var b strings.Builder
	f.writeTo(&b)
	return clip.Marked(b.String(), TextBytesMax, "…")
}

func (f *fault) writeTo(b *strings.Builder) {
	b.WriteString("validating " + f.at.place + ": ")
	if f.what != nil {
		b.WriteString(f.what())
	}
	for i, in := range f.in {
		if b.Len() > TextBytesMax {
			return
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		in.writeTo(b)
	}
}

func (n *schemaNode) newFault(text string) *fault {
	return &fault{at: n, what: func() string { return text }}
}

// localFault is the library's error about the keywords that depend on the value alone.
func (n *schemaNode) localFault(w *measuredValue) *fault {
	return &fault{at: n, what: func() string {
		r, err := n.local.Resolve(&jsonschema.ResolveOptions{})
		if err == nil {
			err = r.Validate(w.raw)
		}
		if err == nil {
			return "the value does not fit"
		}
		return strings.TrimPrefix(err.Error(), "validating root: ")
	}}
}
