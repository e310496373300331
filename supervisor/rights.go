package supervisor

import "slices"

// rights is the meet of the parent's rights and the definition's; denies unite.
func (s State) rights(parent, deny []string, def Definition) (rights, denied []string) {
	if parent == nil {
		for _, t := range s.Run.Tools {
			parent = append(parent, t.Name)
		}
	}
	denied = slices.Concat(deny, def.Deny)
	rights = []string{}
	for _, name := range parent {
		if (def.Tools == nil || slices.Contains(def.Tools, name)) && !slices.Contains(denied, name) {
			rights = append(rights, name)
		}
	}
	return rights, denied
}

// forbidden are the tools that a member may not use, as far as the run or a
// deny names them. What it may use and is not told of is not forbidden.
func (s State) forbidden(m Member) []string {
	var list []string
	for _, spec := range s.Run.Tools {
		if !slices.Contains(m.Rights, spec.Name) {
			list = append(list, spec.Name)
		}
	}
	for _, name := range m.Deny {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
