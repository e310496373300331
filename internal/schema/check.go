package schema

import (
	"fmt"
	"maps"
)

// validation is one value being checked with one schema.
type validation struct {
	stepsLeft      int // steps
	spent          bool
	depth          int
	trackEvaluated bool // the caller needs to know what was seen
	results        map[nodeValue]checkResult
}

type nodeValue struct {
	n *schemaNode
	w *measuredValue
}

// checkResult is the result of a schema applied to a value: the first fault, or what was seen.
type checkResult struct {
	fault     *fault
	evaluated *evaluatedParts // nil: nothing seen, or the caller does not need it
}

// evaluatedParts are the items and properties that a schema has found to fit.
type evaluatedParts struct {
	allItems, allProps bool
	first              int // number of leading items
	items              map[int]bool
	props              map[string]bool
}

var spentResult = checkResult{fault: (&schemaNode{}).newFault("too much work")}

// applySchema applies a schema to a value, once.
func (c *validation) applySchema(n *schemaNode, w *measuredValue) checkResult {
	if !c.spendSteps(n.cost) {
		return spentResult
	}
	if n.simple {
		return c.applyKeywords(n, w)
	}
	key := nodeValue{n, w}
	if o, ok := c.results[key]; ok {
		return o
	}
	if c.depth++; c.depth > DepthMax {
		c.spent = true
	}
	o := c.applyKeywords(n, w)
	c.depth--
	c.results[key] = o
	return o
}

// applyKeywords applies the keywords of a schema, in an order that depends on the schema and the
// value alone.
func (c *validation) applyKeywords(n *schemaNode, w *measuredValue) checkResult {
	var s *evaluatedParts
	if c.trackEvaluated {
		s = &evaluatedParts{items: map[int]bool{}, props: map[string]bool{}}
	}
	if n.ref != nil {
		if f := c.applyInPlace(n, n.ref, w, s); f != nil {
			return checkResult{fault: f}
		}
	}
	f := c.checkLocal(n, w)
	if f == nil {
		f = c.applyAlternatives(n, w, s)
	}
	if f == nil && w.kind == "array" {
		f = c.checkArray(n, w, s)
	}
	if f == nil && w.kind == "object" {
		f = c.checkObject(n, w, s)
	}
	if f != nil {
		return checkResult{fault: f}
	}
	return checkResult{evaluated: s}
}

// checkLocal checks the keywords that depend on the value alone.
func (c *validation) checkLocal(n *schemaNode, w *measuredValue) *fault {
	if !w.isOf(n.types) {
		return n.localFault(w)
	}
	if n.enumIdentities != nil || n.constIdentity != nil {
		if !n.kinds[w.kind] || !c.spendSteps(w.size/stepBytes) {
			return n.localFault(w)
		}
		id := w.identity()
		if n.enumIdentities != nil && !n.enumIdentities[id] || n.constIdentity != nil && *n.constIdentity != id {
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
		if !c.spendSteps(cost) || n.rest.Validate(w.raw) != nil {
			return n.localFault(w)
		}
	}
	return nil
}

// checkSizes checks the number of items or properties, and which properties there are.
func (c *validation) checkSizes(n *schemaNode, w *measuredValue) *fault {
	if n.sizes != nil && (!c.spendSteps(1+len(n.local.Required)/stepNames) || n.sizes.Validate(w.raw) != nil) {
		return n.localFault(w)
	}
	return nil
}

func (c *validation) checkUnique(n *schemaNode, w *measuredValue) *fault {
	if !c.spendSteps(len(w.items) + w.size/stepBytes) {
		return spentResult.fault
	}
	places := make(map[string]int, len(w.items))
	for i, in := range w.items {
		id := in.identity()
		if j, twice := places[id]; twice {
			return n.newFault(fmt.Sprintf("uniqueItems: array items %d and %d are equal", i, j))
		}
		places[id] = i
	}
	return nil
}

// applyInPlace applies a schema within n to the same value, and records what that schema has seen.
func (c *validation) applyInPlace(n, to *schemaNode, w *measuredValue, s *evaluatedParts) *fault {
	o := c.applySchema(to, w)
	if o.fault != nil {
		return &fault{at: n, in: []*fault{o.fault}}
	}
	c.mergeEvaluated(s, o.evaluated)
	return nil
}

func (c *validation) mergeEvaluated(s, more *evaluatedParts) {
	if s == nil || more == nil || !c.spendSteps((len(more.items)+len(more.props))/stepEntries) {
		return
	}
	s.allItems, s.allProps, s.first = s.allItems || more.allItems, s.allProps || more.allProps, max(s.first, more.first)
	maps.Copy(s.items, more.items)
	maps.Copy(s.props, more.props)
}

// applyAlternatives applies the schemas that apply to the same value.
func (c *validation) applyAlternatives(n *schemaNode, w *measuredValue, s *evaluatedParts) *fault {
	for _, to := range n.all {
		if f := c.applyInPlace(n, to, w, s); f != nil {
			return f
		}
	}
	if f := c.anyOf(n, w, s); f != nil {
		return f
	}
	if f := c.oneOf(n, w, s); f != nil {
		return f
	}
	if n.not != nil && c.applySchema(n.not, w).fault == nil {
		return n.newFault("not: validated against <anonymous schema>")
	}
	if n.cond == nil {
		return nil
	}
	next := n.els
	if o := c.applySchema(n.cond, w); o.fault == nil {
		c.mergeEvaluated(s, o.evaluated)
		next = n.then
	}
	if next == nil {
		return nil
	}
	return c.applyInPlace(n, next, w, s)
}

// anyOf applies all alternatives if the caller needs to know what they have seen.
func (c *validation) anyOf(n *schemaNode, w *measuredValue, s *evaluatedParts) *fault {
	if n.any == nil {
		return nil
	}
	var faults []*fault
	for _, to := range n.any {
		o := c.applySchema(to, w)
		if c.spent {
			return spentResult.fault
		}
		if o.fault == nil && s == nil {
			return nil
		}
		if o.fault != nil {
			faults = append(faults, o.fault)
		}
		c.mergeEvaluated(s, o.evaluated)
	}
	if len(faults) < len(n.any) {
		return nil
	}
	return &fault{at: n, what: func() string { return "anyOf: did not validate against any of " + n.anyText + ":\n" }, in: faults}
}

func (c *validation) oneOf(n *schemaNode, w *measuredValue, s *evaluatedParts) *fault {
	if n.one == nil {
		return nil
	}
	fits := -1
	for i, to := range n.one {
		o := c.applySchema(to, w)
		if c.spent {
			return spentResult.fault
		}
		if o.fault != nil {
			continue
		}
		if fits >= 0 {
			return n.newFault(fmt.Sprintf("oneOf: validated against both %s and %s", n.one[fits].place, to.place))
		}
		fits = i
		c.mergeEvaluated(s, o.evaluated)
	}
	if fits < 0 {
		return n.newFault("oneOf: did not validate against any of " + n.oneText)
	}
	return nil
}
