package supervisor

import (
	"fmt"
	"slices"

	"github.com/benbjohnson/immutable"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

// roster holds the members of a run, the ended ones too. It is a value that shares
// structure: a write copies nodes of 32 entries. Its order is that of the ids, so a
// member's descendants follow it.
type roster struct {
	byID     *immutable.SortedMap[string, *Member] // to members that are never written again
	revision uint64                                // how often something changed that a Summary shows
	busy     int                                   // members that wait neither for a person nor for a child
}

// Member returns one member.
func (r roster) Member(id spec.ID) (Member, bool) {
	if r.byID == nil {
		return Member{}, false
	}
	m, ok := r.byID.Get(string(id))
	if !ok {
		return Member{}, false
	}
	return *m, true
}

func (r roster) put(m Member) roster {
	if r.byID == nil {
		r.byID = immutable.NewSortedMap[string, *Member](nil)
	}
	old, ok := r.byID.Get(string(m.ID))
	if !ok || !old.looksLike(m) {
		r.revision++
	}
	if ok && old.isBusy() {
		r.busy--
	}
	if m.isBusy() {
		r.busy++
	}
	r.byID = r.byID.Set(string(m.ID), &m)
	return r
}

// isBusy reports whether a member waits neither for a person nor for a child. It may hold nothing all the same: it is
// about to begin or to go on, or a tool runs.
func (m *Member) isBusy() bool { return !m.Done && m.Query == nil && m.Children == 0 }

// looksLike reports whether a Summary shows two states of a member alike.
func (m *Member) looksLike(next Member) bool {
	return m.Node == next.Node && m.Done == next.Done && m.Stopping == next.Stopping && m.Silent == next.Silent && m.Query == next.Query && m.HandedTo == next.HandedTo
}

// Count is how many members ever joined.
func (r roster) Count() int {
	if r.byID == nil {
		return 0
	}
	return r.byID.Len()
}

// Members calls visit for every member in the order of their ids.
func (r roster) Members(visit func(Member)) {
	if r.byID == nil {
		return
	}
	for it := r.byID.Iterator(); !it.Done(); {
		_, m, _ := it.Next()
		visit(*m)
	}
}

// tellLive sends a fact to every member that has not ended.
func (r roster) tellLive(fact agent.Fact) []Effect {
	var fx []Effect
	r.Members(func(m Member) {
		if !m.Done { //mutant:cancel-tells-only-the-root
			fx = append(fx, Tell{To: m.ID, Fact: fact})
		}
	})
	return fx
}

// stopBelow tells all live descendants of a member to stop. It marks them, so that
// a Delegate of theirs that is in flight begins nothing.
func (r roster) stopBelow(of spec.ID, f agent.Canceled) (roster, []Effect) {
	var fx []Effect
	it := r.byID.Iterator()
	for it.Seek(string(of) + "-"); !it.Done(); {
		id, member, _ := it.Next()
		if !spec.ID(id).IsBelow(of) {
			break
		}
		if member.Done { //mutant:background-child-outlives-its-parent
			continue
		}
		m := *member
		m.Stopping = true //mutant:children-stopping
		r = r.put(m)
		fx = append(fx, Tell{To: m.ID, Fact: f})
	}
	return r, fx
}

// stopDescendants stops all live descendants of a member that has ended, not only its
// children: until these have ended, too, the members below them would continue. It
// marks them, so that a Delegate of theirs that is in flight begins nothing.
func (r roster) stopDescendants(m Member) (roster, []Effect) {
	if m.Children == 0 { //mutant:orphans-live-on
		return r, nil
	}
	return r.stopBelow(m.ID, agent.Canceled{Why: "an agent above it has ended", Now: true})
}

// findRecipient finds the recipient of a message: the sender's parent, a member by its
// id, or one of the sender's live children or siblings by its name.
func (r roster) findRecipient(m Member, to string) (found Member, why string) {
	if to == "parent" {
		to = string(r.beginner(m).Parent)
	}
	found, ok := r.Member(spec.ID(to))
	switch {
	case to == "":
		return found, "you have no parent"
	case ok && found.ID == m.ID:
		return found, "that is yourself"
	case ok && found.Done: //mutant:message-to-the-dead
		return found, fmt.Sprintf("%s (%s) has finished: %s", found.ID, found.Name, found.Outcome.Reason)
	case ok:
		return found, ""
	}
	var named []Member
	r.eachRelative(m, func(c Member) {
		if c.Name == to {
			named = append(named, c)
		}
	})
	live := slices.DeleteFunc(slices.Clone(named), func(c Member) bool { return c.Done })
	switch {
	case len(live) == 1:
		return live[0], ""
	case len(live) > 1:
		return found, fmt.Sprintf("there are several agents %q: %s", to, joinIDs(live))
	case len(named) > 0:
		return found, fmt.Sprintf("%s (%s) has finished: %s", named[0].ID, to, named[0].Outcome.Reason)
	}
	return found, fmt.Sprintf("there is no agent %.64q for you; name the parent, a child or sibling, or an agent's id", to)
}

// eachRelative calls each for the children and siblings of a member, in the order
// of their ids.
func (r roster) eachRelative(m Member, each func(Member)) {
	r.eachBelow(m.ID, func(c Member) {
		if c.Parent == m.ID {
			each(c)
		}
	})
	if m = r.beginner(m); m.ID == spec.Root {
		return
	}
	r.eachBelow(m.Parent, func(c Member) {
		if c.Parent == m.Parent && c.ID != m.ID {
			each(c)
		}
	})
}

// eachBelow calls each for all descendants of a member, in the order of their ids.
func (r roster) eachBelow(id spec.ID, each func(Member)) {
	it := r.byID.Iterator()
	for it.Seek(string(id) + "-"); !it.Done(); {
		key, c, _ := it.Next()
		if !spec.ID(key).IsBelow(id) {
			return
		}
		each(*c)
	}
}
