package schema

import (
	"errors"
	"fmt"
)

// StepsMax is how much work the check of one value with one schema may be. A step
// is about a microsecond: one schema applied to one value.
//
// The bound decides in the loop, so it must come out alike in every replay: it is
// counted before the check from the schema and the value alone, by no clock, as if
// no branch were cut short. Whoever changes this number, or how steps are counted,
// changes what recorded runs decide, and gives the loop new rules.
const StepsMax = 1_000_000

// ErrCost: a value and a schema that are too much work together.
var ErrCost = errors.New("schema: too much work")

func costError(what string) error {
	return fmt.Errorf("%w: checking %s may take more than %d steps; make the value smaller, or the schema simpler: fewer alternatives (anyOf, oneOf, $ref) within alternatives, shorter patterns", ErrCost, what, StepsMax)
}

// Costs of one step, in the sizes that are counted.
const (
	stepEntries = 16      // names of a map that are looked up
	stepPrinted = 16      // bytes of a value that an error prints
	stepCopied  = 128     // bytes of an error that is wrapped
	stepMatched = 32      // instructions of a pattern at one byte
	errorBytes  = 80      // of an error beside what it names
	textMax     = 1 << 40 // of the bytes of an error
)

// value is a JSON value with its size.
type value struct {
	kind  string
	size  int // bytes, with those within
	props map[string]*value
	items []*value
}

const valueBytes = 8 // of a value beside its text

func weigh(v any) *value {
	w := &value{size: valueBytes}
	switch v := v.(type) {
	case nil:
		w.kind = "null"
	case bool:
		w.kind = "boolean"
	case string:
		w.kind, w.size = "string", w.size+len(v)
	case []any:
		w.kind = "array"
		for _, one := range v {
			in := weigh(one)
			w.items, w.size = append(w.items, in), w.size+in.size
		}
	case map[string]any:
		w.kind, w.props = "object", make(map[string]*value, len(v))
		for name, one := range v {
			in := weigh(one)
			w.props[name], w.size = in, w.size+in.size+len(name)
		}
	default:
		w.kind = "number"
	}
	return w
}

// is reports whether a value may be of one of the types; all values are of none.
func (w *value) is(types []string) bool {
	for _, t := range types {
		if t == w.kind || w.kind == "number" && t == "integer" {
			return true
		}
	}
	return len(types) == 0
}

// work is what the check of a value is: steps, and the bytes of its longest error.
type work struct{ steps, text int }

type pair struct {
	n *node
	w *value
}

// counter counts each pair of a schema and a value once; a check looks at it as
// often as there are ways to it.
type counter struct {
	known map[pair]work
	spent bool // the count is beyond StepsMax
}

// affordable reports whether a value can be checked within StepsMax.
func affordable(n *node, w *value) bool {
	c := counter{known: map[pair]work{}}
	return c.count(n, w).steps <= StepsMax && !c.spent
}

// tally adds up the parts of one count.
type tally struct {
	c     *counter
	steps int
	text  int // of the longest error of a part
}

func (t *tally) add(steps int) { t.steps = min(t.steps+steps, StepsMax+1) }

func (t *tally) part(n *node, w *value) (text int) {
	in := t.c.count(n, w)
	t.add(in.steps)
	t.text = max(t.text, in.text)
	return in.text
}

func (c *counter) count(n *node, w *value) work {
	key := pair{n, w}
	if k, ok := c.known[key]; ok || c.spent {
		return k
	}
	if len(c.known) > StepsMax { // each pair is a step at least
		c.spent = true
		return work{}
	}
	c.known[key] = work{}
	t := &tally{c: c}
	t.add(1 + (n.entries+len(w.props)+len(w.items))/stepEntries)
	for _, to := range n.ref {
		t.part(to, w)
	}
	fits := w.is(n.types)
	if n.prints || !fits {
		t.text = max(t.text, w.size+n.enum)
		t.add((w.size + n.enum) / stepPrinted)
	}
	if fits {
		t.within(n, w)
	}
	t.text = min(t.text+errorBytes+n.place, textMax)
	t.add(t.text / stepCopied)
	k := work{t.steps, t.text}
	c.known[key] = k
	c.spent = c.spent || k.steps > StepsMax
	return k
}

// within counts what follows when the type is right.
func (t *tally) within(n *node, w *value) {
	alternatives := 0 // an error holds those of all of them
	for _, to := range n.any {
		alternatives = min(alternatives+t.part(to, w), textMax)
	}
	t.text = max(t.text, alternatives)
	for _, to := range n.same {
		t.part(to, w)
	}
	if n.pattern > 0 && w.kind == "string" {
		t.add(n.pattern * w.size / stepMatched)
		t.text = max(t.text, w.size)
	}
	if n.unique && w.kind == "array" {
		t.add(4*w.size/stepPrinted + 2*len(w.items)) // each item is hashed
	}
	for i, in := range w.items {
		for _, to := range n.each {
			t.part(to, in)
		}
		if i < len(n.listed) {
			t.part(n.listed[i], in)
		}
	}
	for name, in := range w.props {
		t.property(n, name, in)
	}
}

func (t *tally) property(n *node, name string, in *value) {
	to, named := n.props[name]
	if named {
		t.part(to, in)
	}
	for _, p := range n.patterns {
		t.add(1 + p.cost*(len(name)+1)/stepMatched)
		t.part(p.to, in)
	}
	for _, to := range n.extra { // unevaluatedProperties may apply to a named one, too
		t.part(to, in)
	}
	for _, to := range n.names {
		t.part(to, &value{kind: "string", size: valueBytes + len(name)})
	}
}
