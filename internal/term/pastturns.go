package term

import (
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// pastTurns are the turns that an agent has behind it; 0: none.
type pastTurns struct {
	replied  int // the last one with the reply of the model
	finished int // the last one that is complete
}

func (p *pastTurns) addEvent(e client.Event) {
	switch e.Kind {
	case event.KindMessageAssistant:
		p.replied = max(p.replied, e.Turn)
	case event.KindTurnFinished:
		p.finished = max(p.finished, e.Turn)
	}
}

// RepliedTurn returns the last turn of an agent that has the reply of its model; 0: none has. The turn that runs may have none.
func (t *Tree) RepliedTurn(id string) int {
	if m := t.agents[id]; m != nil {
		return m.pastTurns.replied
	}
	return 0
}

// FinishedTurn returns the last turn that an agent has completed, with the results of its calls; 0: none.
func (t *Tree) FinishedTurn(id string) int {
	if m := t.agents[id]; m != nil {
		return m.pastTurns.finished
	}
	return 0
}
