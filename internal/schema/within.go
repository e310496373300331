package schema

import (
	"fmt"
	"maps"
	"slices"
)

// applyToChild applies a schema to a part of the value.
func (c *validation) applyToChild(n, to *schemaNode, in *measuredValue) *fault {
	if f := c.applySchema(to, in).fault; f != nil {
		return &fault{at: n, in: []*fault{f}}
	}
	return nil
}

func (c *validation) checkArray(n *schemaNode, w *measuredValue, s *evaluatedParts) *fault {
	for i, in := range w.items {
		to := n.others
		if i < len(n.first) {
			to = n.first[i]
		}
		if to == nil {
			break
		}
		if f := c.applyToChild(n, to, in); f != nil {
			return f
		}
	}
	if s != nil {
		s.first = max(s.first, min(len(n.first), len(w.items)))
		s.allItems = s.allItems || n.others != nil
	}
	if n.contains != nil {
		if f := c.checkContains(n, w, s); f != nil {
			return f
		}
	}
	if f := c.checkSizes(n, w); f != nil {
		return f
	}
	if n.unique {
		if f := c.checkUnique(n, w); f != nil {
			return f
		}
	}
	if n.unevaluatedItems == nil || s == nil || s.allItems {
		return nil
	}
	for i := s.first; i < len(w.items); i++ {
		if !s.items[i] {
			if f := c.applyToChild(n, n.unevaluatedItems, w.items[i]); f != nil {
				return f
			}
		}
	}
	s.allItems = true
	return nil
}

func (c *validation) checkContains(n *schemaNode, w *measuredValue, s *evaluatedParts) *fault {
	found := 0
	for i, in := range w.items {
		fits := c.applySchema(n.contains, in).fault == nil
		if c.spent {
			return spentResult.fault
		}
		if !fits {
			continue
		}
		if found++; s != nil {
			s.items[i] = true
		}
	}
	switch {
	case found == 0 && n.least > 0:
		return n.newFault("contains: the array does not have an item matching " + n.contains.place)
	case found < n.least:
		return n.newFault(fmt.Sprintf("minContains: contains validated %d items, less than %d", found, n.least))
	case n.most != nil && found > *n.most:
		return n.newFault(fmt.Sprintf("maxContains: contains validated %d items, greater than %d", found, *n.most))
	}
	return nil
}

func (c *validation) checkObject(n *schemaNode, w *measuredValue, s *evaluatedParts) *fault {
	if f := c.checkProperties(n, w, s); f != nil {
		return f
	}
	for _, name := range w.names {
		if n.names == nil {
			break
		}
		if f := c.applyToChild(n, n.names, w.nameValue(name)); f != nil {
			return f
		}
	}
	if f := c.checkSizes(n, w); f != nil {
		return f
	}
	for _, d := range n.needs {
		missing := slices.DeleteFunc(slices.Clone(d.names), func(name string) bool { return w.props[name] != nil })
		if w.props[d.name] != nil && len(missing) > 0 {
			return n.newFault(fmt.Sprintf("dependentRequired[%q]: missing properties %q", d.name, missing))
		}
	}
	for _, d := range n.dependents {
		if w.props[d.name] != nil {
			if f := c.applyInPlace(n, d.to, w, s); f != nil {
				return f
			}
		}
	}
	if n.unevaluatedProperties == nil || s == nil || s.allProps {
		return nil
	}
	for _, name := range w.names {
		if !s.props[name] {
			if f := c.applyToChild(n, n.unevaluatedProperties, w.props[name]); f != nil {
				return f
			}
		}
	}
	s.allProps = true
	return nil
}

// checkProperties applies the schemas for the names of the properties.
func (c *validation) checkProperties(n *schemaNode, w *measuredValue, s *evaluatedParts) *fault {
	if len(n.props)+len(n.patterns) == 0 && n.extra == nil {
		return nil
	}
	named := map[string]bool{}
	for _, p := range n.props {
		if in := w.props[p.name]; in != nil {
			if f := c.applyToChild(n, p.to, in); f != nil {
				return f
			}
			named[p.name] = true
		}
	}
	if len(n.patterns) > 0 || n.extra != nil {
		if f := c.checkOtherProperties(n, w, named); f != nil {
			return f
		}
	}
	if s != nil && c.spendSteps(len(named)/stepEntries) {
		maps.Copy(s.props, named)
	}
	return nil
}

func (c *validation) checkOtherProperties(n *schemaNode, w *measuredValue, named map[string]bool) *fault {
	var unexpected []string
	for _, name := range w.names {
		for _, p := range n.patterns {
			if !c.spendSteps(1 + p.cost*(len(name)+1)/stepMatched) {
				return spentResult.fault
			}
			if !p.re.MatchString(name) {
				continue
			}
			if f := c.applyToChild(n, p.to, w.props[name]); f != nil {
				return f
			}
			named[name] = true
		}
	}
	for _, name := range w.names {
		switch {
		case n.extra == nil || named[name]:
		case n.closed:
			unexpected = append(unexpected, name)
		default:
			if f := c.applyToChild(n, n.extra, w.props[name]); f != nil {
				return f
			}
			named[name] = true
		}
	}
	if len(unexpected) > 0 {
		return n.newFault(fmt.Sprintf("unexpected additional properties %q", unexpected))
	}
	return nil
}
