package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
)

const sendTool = "send_message"

// send delivers a message from one agent to another, and reports the outcome to
// the sender. The supervisor delivers it because only the supervisor knows which
// members are live: a message never wakes a log that has ended.
func send(s State, from spec.ID, f agent.Send) (State, []Effect) {
	m, ok := s.Member(from)
	if !ok || m.Done {
		return s, nil
	}
	answer := func(fail bool, format string, args ...any) []Effect {
		return []Effect{Tell{To: from, Fact: agent.Returned{Call: f.Call, Error: fail, Text: fmt.Sprintf(format, args...)}}}
	}
	switch limit := s.Run.Limits.Messages; {
	case s.Cancel != nil || s.Phase != Live || m.Stopping: //mutant:message-after-the-cancel
		return s, answer(true, "not sent: the run was canceled")
	case !slices.Contains(m.Rights, sendTool):
		return s, answer(true, "not sent: this agent may not send messages")
	case len(f.Text) > agent.MessageBytesMax:
		return s, answer(true, "not sent: a message may have %d bytes", agent.MessageBytesMax)
	case s.Messages >= limit: //mutant:messages-unlimited
		return s, answer(true, "not sent: the agents of a run may send %d messages", limit)
	}
	to, why := s.addressee(m, f.To)
	if why != "" {
		return s, answer(true, "not sent: %s", why) //mutant:message-not-answered
	}
	s.Messages++
	return s, append([]Effect{Tell{To: to.ID, Fact: agent.Messaged{From: from, Name: m.Name, Text: f.Text}}},
		answer(false, "sent to %s (%s), which reads it before its next turn", to.ID, to.Name)...)
}

// addressee finds the recipient of a message: the sender's parent, a member by its
// id, or one of the sender's live children or siblings by its name.
func (s State) addressee(m Member, to string) (found Member, why string) {
	if to == "parent" {
		to = string(m.Parent)
	}
	found, ok := s.Member(spec.ID(to))
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
	s.relatives(m, func(c Member) {
		if c.Name == to {
			named = append(named, c)
		}
	})
	live := slices.DeleteFunc(slices.Clone(named), func(c Member) bool { return c.Done })
	switch {
	case len(live) == 1:
		return live[0], ""
	case len(live) > 1:
		return found, fmt.Sprintf("there are several agents %q: %s", to, ids(live))
	case len(named) > 0:
		return found, fmt.Sprintf("%s (%s) has finished: %s", named[0].ID, to, named[0].Outcome.Reason)
	}
	return found, fmt.Sprintf("there is no agent %.64q for you; name the parent, a child or sibling, or an agent's id", to)
}

// relatives calls each for the children and siblings of a member, in the order
// of their ids.
func (s State) relatives(m Member, each func(Member)) {
	s.below(m.ID, func(c Member) {
		if c.Parent == m.ID {
			each(c)
		}
	})
	if m.ID == spec.Root {
		return
	}
	s.below(m.Parent, func(c Member) {
		if c.Parent == m.Parent && c.ID != m.ID {
			each(c)
		}
	})
}

// below calls each for all descendants of a member, in the order of their ids.
func (s State) below(id spec.ID, each func(Member)) {
	it := s.members.Iterator()
	for it.Seek(string(id) + "-"); !it.Done(); {
		key, c, _ := it.Next()
		if !strings.HasPrefix(key, string(id)+"-") {
			return
		}
		each(*c)
	}
}

func ids(list []Member) string {
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = string(m.ID)
	}
	return strings.Join(names, ", ")
}

// working answers a delegation whose child works in the background.
func working(m Member) agent.Returned {
	return agent.Returned{Call: m.Call, Live: true,
		Text: fmt.Sprintf("%s (%s) works in the background; its answer comes to you as a message", m.ID, m.Name)}
}

// report returns the fact that informs a parent of a child's end.
func report(m Member) agent.Fact {
	r := answer(m)
	if !m.Background {
		return r
	}
	return agent.Messaged{From: m.ID, Name: m.Name, Call: m.Call, Text: r.Text, Error: r.Error, WorkedMS: r.WorkedMS}
}
