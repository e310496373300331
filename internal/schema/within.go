package schema

import (
	"fmt"
	"maps"
	"slices"
)

// within applies a schema to a part of the value.
func (c *check) within(n, to *node, in *value) *fault {
	if f := c.apply(to, in).fault; f != nil {
		return &fault{at: n, in: []*fault{f}}
	}
	return nil
}

func (c *check) array(n *node, w *value, s *seen) *fault {
	for i, in := range w.items {
		to := n.others
		if i < len(n.first) {
			to = n.first[i]
		}
		if to == nil {
			break
		}
		if f := c.within(n, to, in); f != nil {
			return f
		}
	}
	if s != nil {
		s.first = max(s.first, min(len(n.first), len(w.items)))
		s.allItems = s.allItems || n.others != nil
	}
	if n.contains != nil {
		if f := c.contain(n, w, s); f != nil {
			return f
		}
	}
	if f := c.sizes(n, w); f != nil {
		return f
	}
	if n.unique {
		if f := c.distinct(n, w); f != nil {
			return f
		}
	}
	if n.unevaluatedItems == nil || s == nil || s.allItems {
		return nil
	}
	for i := s.first; i < len(w.items); i++ {
		if !s.items[i] {
			if f := c.within(n, n.unevaluatedItems, w.items[i]); f != nil {
				return f
			}
		}
	}
	s.allItems = true
	return nil
}

func (c *check) contain(n *node, w *value, s *seen) *fault {
	found := 0
	for i, in := range w.items {
		fits := c.apply(n.contains, in).fault == nil
		if c.spent {
			return spentFault.fault
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
		return n.says("contains: the array does not have an item matching " + n.contains.place)
	case found < n.least:
		return n.says(fmt.Sprintf("minContains: contains validated %d items, less than %d", found, n.least))
	case n.most != nil && found > *n.most:
		return n.says(fmt.Sprintf("maxContains: contains validated %d items, greater than %d", found, *n.most))
	}
	return nil
}

func (c *check) object(n *node, w *value, s *seen) *fault {
	if f := c.properties(n, w, s); f != nil {
		return f
	}
	for _, name := range w.names {
		if n.names == nil {
			break
		}
		if f := c.within(n, n.names, w.nameValue(name)); f != nil {
			return f
		}
	}
	if f := c.sizes(n, w); f != nil {
		return f
	}
	for _, d := range n.needs {
		missing := slices.DeleteFunc(slices.Clone(d.names), func(name string) bool { return w.props[name] != nil })
		if w.props[d.name] != nil && len(missing) > 0 {
			return n.says(fmt.Sprintf("dependentRequired[%q]: missing properties %q", d.name, missing))
		}
	}
	for _, d := range n.dependents {
		if w.props[d.name] != nil {
			if f := c.same(n, d.to, w, s); f != nil {
				return f
			}
		}
	}
	if n.unevaluatedProperties == nil || s == nil || s.allProps {
		return nil
	}
	for _, name := range w.names {
		if !s.props[name] {
			if f := c.within(n, n.unevaluatedProperties, w.props[name]); f != nil {
				return f
			}
		}
	}
	s.allProps = true
	return nil
}

// properties applies the schemas for the names of the properties.
func (c *check) properties(n *node, w *value, s *seen) *fault {
	if len(n.props)+len(n.patterns) == 0 && n.extra == nil {
		return nil
	}
	named := map[string]bool{}
	for _, p := range n.props {
		if in := w.props[p.name]; in != nil {
			if f := c.within(n, p.to, in); f != nil {
				return f
			}
			named[p.name] = true
		}
	}
	if len(n.patterns) > 0 || n.extra != nil {
		if f := c.others(n, w, named); f != nil {
			return f
		}
	}
	if s != nil && c.pay(len(named)/stepEntries) {
		maps.Copy(s.props, named)
	}
	return nil
}

func (c *check) others(n *node, w *value, named map[string]bool) *fault {
	var unexpected []string
	for _, name := range w.names {
		for _, p := range n.patterns {
			if !c.pay(1 + p.cost*(len(name)+1)/stepMatched) {
				return spentFault.fault
			}
			if !p.re.MatchString(name) {
				continue
			}
			if f := c.within(n, p.to, w.props[name]); f != nil {
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
			if f := c.within(n, n.extra, w.props[name]); f != nil {
				return f
			}
			named[name] = true
		}
	}
	if len(unexpected) > 0 {
		return n.says(fmt.Sprintf("unexpected additional properties %q", unexpected))
	}
	return nil
}
