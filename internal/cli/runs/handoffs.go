package runs

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

// handoff is the moment at which one agent took over a conversation from another.
type handoff struct {
	giver, taker string // ids
	call         string // of the giver
	from, to, at string // the agents and the time, as people read them
}

// readHandoffs reads the handoffs of a run from its events, if the transcript has to do with one.
func readHandoffs(ctx context.Context, s *session.Session, run string, t transcriptDoc) (list []handoff, err error) {
	if !slices.ContainsFunc(t.Messages, isAboutHandoff) {
		return nil, nil
	}
	var tree term.Tree
	err = s.Events(ctx, run, nil, false, func(e client.Event, _ []byte) error {
		tree.AddEvent(e)
		if e.Kind != event.KindAgentHandedOff {
			return nil
		}
		d := client.DataOf[event.AgentHandedOff](e)
		h := handoff{giver: e.Agent, taker: string(d.To), call: d.Call, at: e.TS}
		if at, err := time.Parse(time.RFC3339, e.TS); err == nil {
			h.at = at.Local().Format(time.DateTime)
		}
		h.from, h.to = nameAndID(tree.AgentName(e.Agent), e.Agent), nameAndID(d.Name, h.taker)
		list = append(list, h)
		return nil
	})
	return list, err
}

// isAboutHandoff reports whether a message hands off the conversation, or tells an agent that it has taken it over.
func isAboutHandoff(m model.Message) bool {
	return m.Role == model.User && strings.Contains(m.Text, "has handed off this conversation to you") ||
		slices.ContainsFunc(m.Calls, func(c model.ToolCall) bool { return c.Name == "handoff" })
}

func nameAndID(name, id string) string { return term.CleanLine(name) + " (" + term.CleanLine(id) + ")" }

// drawTaken says at the beginning of a transcript from which agent this one took over.
func (cs *Commands) drawTaken(p *console.Page, agent string, list []handoff) {
	for _, h := range list {
		if h.taker == agent {
			p.AddLine("")
			p.AddLine(cs.Console.Style.Yellow("── took over from " + h.from + " at " + h.at))
		}
	}
}

// drawGiven says below a reply which agent took over by its calls, and when.
func (cs *Commands) drawGiven(p *console.Page, agent string, m model.Message, list []handoff) {
	for _, c := range m.Calls {
		for _, h := range list {
			if h.giver == agent && h.call == c.ID {
				p.AddLine(cs.Console.Style.Yellow("── " + h.to + " took over at " + h.at))
			}
		}
	}
}
