// Package answertext puts the text of the root agent of a run together from the events of the run, so that it can be
// passed on while the agent writes.
package answertext

import (
	"encoding/json"
	"strings"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
)

// Stream passes on the text of all turns, piece by piece. It must not be used by two goroutines at once.
type Stream struct {
	// Send receives each piece.
	Send func(text string)

	turn string // the part of the current turn's text that was sent
	gap  bool   // an empty line belongs before the next text
}

// Handle handles an event of the run.
func (s *Stream) Handle(e client.Event) {
	if e.Agent != string(spec.Root) {
		return
	}
	switch e.Kind {
	case event.KindMessageDelta:
		var d event.Delta
		if json.Unmarshal(e.Data, &d) == nil {
			s.send(d.Text)
		}
	case event.KindMessageAssistant:
		var d event.Said
		if json.Unmarshal(e.Data, &d) == nil {
			s.Complete(d.Text)
		}
	case event.KindTurnStarted:
		if s.turn != "" {
			s.turn, s.gap = "", true
		}
	}
}

// Complete sends what is missing of the text of a turn. Pieces may have been lost: then the whole text
// follows.
func (s *Stream) Complete(text string) {
	rest, ok := strings.CutPrefix(text, s.turn)
	switch {
	case text == "" || s.turn == text:
		return
	case !ok:
		rest, s.gap, s.turn = text, true, ""
	}
	s.send(rest)
}

func (s *Stream) send(text string) {
	if text == "" {
		return
	}
	s.turn += text
	if s.gap {
		text, s.gap = "\n\n"+text, false
	}
	s.Send(text)
}
