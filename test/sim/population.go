package sim

import (
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// population is the actors of the run, found by their addresses.
type population struct {
	*environment
	judges *judges
	actors []*actor
	byAddr map[mailbox.Address]*actor
	forged map[mailbox.Address]bool // garbage speaks in these names: no log can account for it
	super  *actor

	busyTurns []busyTurn
}

func newPopulation(env *environment, js *judges) *population {
	return &population{environment: env, judges: js, byAddr: map[mailbox.Address]*actor{}, forged: map[mailbox.Address]bool{}}
}

// pickShell picks a shell that is not frozen, or nil.
func (p *population) pickShell() *shell {
	a := p.actors[p.IntN(len(p.actors))]
	if len(a.shells) == 0 {
		return nil
	}
	sh := a.shells[p.IntN(len(a.shells))]
	if sh.frozen {
		return nil
	}
	return sh
}

func (p *population) awaitsUser() bool {
	for _, a := range p.actors {
		if st := a.shadow.agent; st != nil && asksPerson(&st.State) && !a.closed {
			return true
		}
	}
	return false
}

func (p *population) anyDamaged() bool {
	for _, a := range p.actors {
		if a.damaged && !p.forged[a.addr] {
			return true
		}
	}
	return false
}

// isDamaged reports whether the log of an address was damaged, so that messages that had arrived there may be gone.
func (p *population) isDamaged(at mailbox.Address) bool {
	return p.byAddr[at] != nil && p.byAddr[at].damaged
}

// allClosed reports whether the run is over and every log is closed.
func (p *population) allClosed() bool {
	for _, a := range p.actors {
		if !a.closed {
			return false
		}
	}
	return len(p.actors) > 0
}

// findActor finds or makes an address.
func (p *population) findActor(at mailbox.Address) *actor {
	a := p.byAddr[at]
	if a == nil {
		a = &actor{addr: at, id: spec.ID(at.Agent()), born: p.now, damaged: p.forged[at]}
		if p.isOn(faultSlow) && !p.faultsEnded && p.percent(20) {
			a.slow = p.now + int64(p.between(1000, 100_000))
		}
		a.shadow.resetReader(p, a)
		p.byAddr[at] = a
		p.actors = append(p.actors, a)
	}
	return a
}

func (p *population) describeActors() string {
	text := ""
	if p.super != nil {
		st := p.super.shadow.super.State
		text = fmt.Sprintf(" run %s, live %d, waiting %d;", st.Phase, st.Live, st.Waiting())
		st.Members(func(m supervisor.Member) {
			if !m.Done {
				text += fmt.Sprintf(" %s is not done;", m.ID)
			}
		})
	}
	for _, a := range p.actors {
		text += fmt.Sprintf(" %s(%d entries, closed %v", a.addr.Agent(), len(a.log), a.closed)
		if st := a.shadow.agent; st != nil {
			text += fmt.Sprintf(", %s", st.State.Phase)
		}
		for _, sh := range a.shells {
			text += fmt.Sprintf(", shell %s at %d %s", sh.start, sh.logReader().N, sh.logReader().Phase)
		}
		text += ")"
	}
	return text
}
