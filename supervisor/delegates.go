package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// The agents of a run form a team: which of them may delegate to which others, and the description of the
// team in their prompts.

const delegateTool = toolname.Delegate

// DelegateTextMax bounds the descriptions of other agents in the description of the tool delegate. The
// names of all agents are in it, however many there are.
const DelegateTextMax = 4 << 10

// delegatesOf lists the definitions to which an agent may delegate, in the order of the run: those
// that its own definition names, or else all that are not OnlyNamed.
func (o Opened) delegatesOf(own Definition) []Definition {
	var list []Definition
	for _, d := range o.Definitions {
		if own.Delegates == nil && !d.OnlyNamed || slices.Contains(own.Delegates, d.Name) {
			list = append(list, d)
		}
	}
	return list
}

// delegateNames lists the names of delegatesOf.
func (o Opened) delegateNames(own Definition) []string {
	var names []string
	for _, d := range o.delegatesOf(own) {
		names = append(names, d.Name)
	}
	return names
}

// isA2A reports whether the name of an agent of another program is that of one that is called by the protocol A2A.
func isA2A(name string) bool { return strings.HasPrefix(name, toolname.A2APrefix) }

// foreignDelegates lists the agents of other programs that an agent calls itself. Where a definition represents one,
// only the agent of that definition calls it.
func (o Opened) foreignDelegates(d Definition) (names []string) {
	if d.Foreign {
		return []string{d.Name}
	}
	for _, name := range d.Delegates {
		if _, stands := o.findDefinition(name); strings.Contains(name, "/") && !stands {
			names = append(names, name)
		}
	}
	return names
}

// foreignMembers lists those of these definitions that represent agents of other programs.
func foreignMembers(list []Definition) (names []string) {
	for _, d := range list {
		if d.Foreign {
			names = append(names, d.Name)
		}
	}
	return names
}

// describeDelegates lists in the description of a tool exactly the agents to which its caller may
// delegate. If their descriptions are longer than DelegateTextMax in total, the longest are clipped.
func describeDelegates(t model.ToolSpec, list []Definition, foreign []string) model.ToolSpec {
	var b strings.Builder
	b.WriteString(t.Description + " Agents:")
	most := descriptionShare(list)
	for _, d := range list {
		text := clip.Marked(strings.TrimSuffix(strings.TrimSpace(d.Description), "."), most, "…")
		fmt.Fprintf(&b, " %s (%s)", d.Name, text)
	}
	for _, name := range foreign {
		where := "on this NATS server"
		if isA2A(name) {
			where = "that is called by A2A"
		}
		fmt.Fprintf(&b, " %s (an agent of another program %s)", name, where)
	}
	switch {
	case len(foreignMembers(list)) > 0:
		b.WriteString(" Agents of other programs know nothing but the task: fork is not for them.")
	case slices.ContainsFunc(foreign, isA2A):
		b.WriteString(" Agents of other programs know nothing but the task: background and fork are not for them, and schema is only for those that are called by A2A.")
	case len(foreign) > 0:
		b.WriteString(" Agents of other programs know nothing but the task: background, fork and schema are not for them.")
	}
	t.Description = b.String()
	return t
}

// descriptionShare is how many bytes of each description fit DelegateTextMax: short descriptions leave
// their share to the longer ones.
func descriptionShare(list []Definition) int {
	sizes := make([]int, len(list))
	for i, d := range list {
		sizes[i] = len(d.Description)
	}
	slices.Sort(sizes)
	room := DelegateTextMax
	for i, size := range sizes {
		if share := room / (len(sizes) - i); size > share {
			return share
		}
		room -= size
	}
	return DelegateTextMax
}
