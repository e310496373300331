package schema

import (
	"fmt"
	"maps"
)

// check is one value being checked with one schema.
type check struct {
	left  int // steps
	spent bool
	depth int
	notes bool // the caller needs to know what was seen
	known map[pair]verdict
}

type pair struct {
	n *node
	w *value
}

// verdict is the result of a schema applied to a value: the first fault, or what was seen.
type verdict struct {
	fault *fault
	seen  *seen // nil: nothing seen, or the caller does not need it
}

// seen are the items and properties that a schema has found to fit.
type seen struct {
	allItems, allProps bool
	first              int // number of leading items
	items              map[int]bool
	props              map[string]bool
}

var spentFault = verdict{fault: (&node{}).says("too much work")}

// apply applies a schema to a value, once.
func (c *check) apply(n *node, w *value) verdict {
	if !c.pay(n.cost) {
		return spentFault
	}
	if n.simple {
		return c.look(n, w)
	}
	key := pair{n, w}
	if o, ok := c.known[key]; ok {
		return o
	}
	if c.depth++; c.depth > DepthMax {
		c.spent = true
	}
	o := c.look(n, w)
	c.depth--
	c.known[key] = o
	return o
}

// look applies the keywords of a schema, in an order that depends on the schema and the
// value alone.
func (c *check) look(n *node, w *value) verdict {
	var s *seen
	if c.notes {
		s = &seen{items: map[int]bool{}, props: map[string]bool{}}
	}
	if n.ref != nil {
		if f := c.same(n, n.ref, w, s); f != nil {
			return verdict{fault: f}
		}
	}
	f := c.local(n, w)
	if f == nil {
		f = c.alternatives(n, w, s)
	}
	if f == nil && w.kind == "array" {
		f = c.array(n, w, s)
	}
	if f == nil && w.kind == "object" {
		f = c.object(n, w, s)
	}
	if f != nil {
		return verdict{fault: f}
	}
	return verdict{seen: s}
}

// local checks the keywords that depend on the value alone.
func (c *check) local(n *node, w *value) *fault {
	if !w.isOf(n.types) {
		return n.localFault(w)
	}
	if n.listed != nil || n.constant != nil {
		if !n.kinds[w.kind] || !c.pay(w.size/stepBytes) {
			return n.localFault(w)
		}
		id := w.identity()
		if n.listed != nil && !n.listed[id] || n.constant != nil && *n.constant != id {
			return n.localFault(w)
		}
	}
	if n.rest != nil {
		cost := 1
		if w.kind == "string" {
			cost += w.size/stepBytes + n.pattern*w.size/stepMatched
		}
		if w.kind == "number" {
			cost += stepsNumber
		}
		if !c.pay(cost) || n.rest.Validate(w.raw) != nil {
			return n.localFault(w)
		}
	}
	return nil
}

// sizes checks the number of items or properties, and which properties there are.
func (c *check) sizes(n *node, w *value) *fault {
	if n.sizes != nil && (!c.pay(1+len(n.local.Required)/stepNames) || n.sizes.Validate(w.raw) != nil) {
		return n.localFault(w)
	}
	return nil
}

func (c *check) distinct(n *node, w *value) *fault {
	if !c.pay(len(w.items) + w.size/stepBytes) {
		return spentFault.fault
	}
	places := make(map[string]int, len(w.items))
	for i, in := range w.items {
		id := in.identity()
		if j, twice := places[id]; twice {
			return n.says(fmt.Sprintf("uniqueItems: array items %d and %d are equal", i, j))
		}
		places[id] = i
	}
	return nil
}

// same applies a schema within n to the same value, and records what that schema has seen.
func (c *check) same(n, to *node, w *value, s *seen) *fault {
	o := c.apply(to, w)
	if o.fault != nil {
		return &fault{at: n, in: []*fault{o.fault}}
	}
	c.note(s, o.seen)
	return nil
}

func (c *check) note(s, more *seen) {
	if s == nil || more == nil || !c.pay((len(more.items)+len(more.props))/stepEntries) {
		return
	}
	s.allItems, s.allProps, s.first = s.allItems || more.allItems, s.allProps || more.allProps, max(s.first, more.first)
	maps.Copy(s.items, more.items)
	maps.Copy(s.props, more.props)
}

// alternatives applies the schemas that apply to the same value.
func (c *check) alternatives(n *node, w *value, s *seen) *fault {
	for _, to := range n.all {
		if f := c.same(n, to, w, s); f != nil {
			return f
		}
	}
	if f := c.anyOf(n, w, s); f != nil {
		return f
	}
	if f := c.oneOf(n, w, s); f != nil {
		return f
	}
	if n.not != nil && c.apply(n.not, w).fault == nil {
		return n.says("not: validated against <anonymous schema>")
	}
	if n.cond == nil {
		return nil
	}
	next := n.els
	if o := c.apply(n.cond, w); o.fault == nil {
		c.note(s, o.seen)
		next = n.then
	}
	if next == nil {
		return nil
	}
	return c.same(n, next, w, s)
}

// anyOf applies all alternatives if the caller needs to know what they have seen.
func (c *check) anyOf(n *node, w *value, s *seen) *fault {
	if n.any == nil {
		return nil
	}
	var faults []*fault
	for _, to := range n.any {
		o := c.apply(to, w)
		if c.spent {
			return spentFault.fault
		}
		if o.fault == nil && s == nil {
			return nil
		}
		if o.fault != nil {
			faults = append(faults, o.fault)
		}
		c.note(s, o.seen)
	}
	if len(faults) < len(n.any) {
		return nil
	}
	return &fault{at: n, what: func() string { return "anyOf: did not validate against any of " + n.anyText + ":\n" }, in: faults}
}

func (c *check) oneOf(n *node, w *value, s *seen) *fault {
	if n.one == nil {
		return nil
	}
	fits := -1
	for i, to := range n.one {
		o := c.apply(to, w)
		if c.spent {
			return spentFault.fault
		}
		if o.fault != nil {
			continue
		}
		if fits >= 0 {
			return n.says(fmt.Sprintf("oneOf: validated against both %s and %s", n.one[fits].place, to.place))
		}
		fits = i
		c.note(s, o.seen)
	}
	if fits < 0 {
		return n.says("oneOf: did not validate against any of " + n.oneText)
	}
	return nil
}
