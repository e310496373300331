package runs

import (
	"context"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/model"
)

// readHandoffs reads the tree with the handoffs of a run from its events, if the transcript has to do with one.
func readHandoffs(ctx context.Context, s *session.Session, run string, t transcriptDoc) (tree term.Tree, err error) {
	if !slices.ContainsFunc(t.Messages, isAboutHandoff) {
		return tree, nil
	}
	err = s.Events(ctx, run, nil, false, func(e client.Event, _ []byte) error {
		tree.AddEvent(e)
		return nil
	})
	return tree, err
}

// isAboutHandoff reports whether a message hands off the conversation, or tells an agent that it has taken it over.
func isAboutHandoff(m model.Message) bool {
	return m.Role == model.User && strings.Contains(m.Text, "has handed off this conversation to you") ||
		slices.ContainsFunc(m.Calls, func(c model.ToolCall) bool { return c.Name == toolname.Handoff })
}

// addTaken says at the beginning of a transcript from which agent this one took over.
func (p *transcriptPage) addTaken() {
	for _, h := range p.flags.tree.Handoffs {
		if h.Taker == p.transcript.Agent {
			p.AddLine("")
			p.AddLine(p.style.Yellow("── " + p.flags.tree.DescribeTaken(h)))
		}
	}
}

// addGiven says below a reply which agent took over by its calls, and when.
func (p *transcriptPage) addGiven(m model.Message) {
	for _, c := range m.Calls {
		for _, h := range p.flags.tree.Handoffs {
			if h.Giver == p.transcript.Agent && h.Call == c.ID {
				p.AddLine(p.style.Yellow("── " + p.flags.tree.DescribeGiven(h)))
			}
		}
	}
}
