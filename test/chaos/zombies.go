package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/failpoint"
)

// zombieActions sums up the actions of zombies: nodes that were frozen at a named place until another
// node had taken over the actor there, and then thawed.
type zombieActions struct {
	zombies, begun, evidence, resolved, asked int
}

// zombieJudge judges the actions of zombies.
type zombieJudge struct {
	*testCluster
	afterlives map[string]zombieActions // by group of places
}

// judgeOne finds out from the logs and the ledger what one zombie did.
func (t *zombieJudge) judgeOne(b *fault, f *replayedRun, r *finishedRun, effects map[string]int) {
	claims := f.claims[b.caught]
	key := b.caught + "." + b.call
	i := slices.IndexFunc(claims, func(c activationSpan) bool { return c.start == b.activation })
	for j, c := range claims { // for a tool only the call is known
		if _, began := f.starts[key][c.start]; began && b.activation == "" && c.node == b.node && c.at <= b.at.UnixMilli() {
			i = j
		}
	}
	switch {
	case i < 0:
		t.found.addOf(r.id, "%s was caught on %s at %s, and no activation of it there is in its log", b.caught, b.node, b.place)
		return
	case i == len(claims)-1:
		t.found.addOf(r.id, "%s was frozen on %s at %s, and nobody claimed it meanwhile", b.caught, b.node, b.place)
		return
	}
	zombie := claims[i].start
	others := 0
	for start, n := range f.starts[key] {
		if start != zombie {
			others += n
		}
	}
	sum := t.afterlives[b.groupName()]
	sum.zombies++
	defer func() { t.afterlives[b.groupName()] = sum }()
	if effects[key] > others {
		sum.begun++
	}
	evidence := slices.Contains(f.late[b.caught+" "+zombie], b.call)
	if evidence {
		sum.evidence++
	}
	person := false
	for query := range r.said {
		person = person || strings.HasPrefix(query, agentOf(b.caught)+"."+b.call+".")
	}
	switch {
	case person:
		sum.asked++
	case evidence:
		sum.resolved++
	}
	switch b.place {
	case inside, failpoint.ToolAfter:
		if !evidence {
			t.found.addOf(r.id, "%s: a call that %s had begun when it was frozen at %s returned, and that is not in the log", key, b.node, b.place)
		}
	default:
		if effects[key] > others {
			t.found.addOf(r.id, "%s was begun by %s, which had been frozen at %s, after a later claim", key, b.node, b.place)
		}
	}
}

// groupName names what had happened to the call when the node was frozen.
func (b *fault) groupName() string {
	for _, z := range zombies {
		if slices.Contains(z.places, b.place) {
			return z.name
		}
	}
	return ""
}

func agentOf(at string) string { _, agent, _ := strings.Cut(at, "."); return agent }

func runOf(at string) string { run, _, _ := strings.Cut(at, "."); return run }

// judgeRun judges all zombies of a run.
func (t *zombieJudge) judgeRun(f *replayedRun, r *finishedRun, effects map[string]int) {
	for _, b := range t.faults {
		if b.kind == zombie && b.caught != "" && runOf(b.caught) == r.id {
			t.judgeOne(b, f, r, effects)
		}
	}
}

// describeGroups returns a line for each group of zombies.
func (t *zombieJudge) describeGroups() string {
	var text strings.Builder
	for _, z := range zombies {
		if a := t.afterlives[z.name]; a.zombies > 0 {
			fmt.Fprintf(&text, "zombies %s: %d; %d effects of theirs came to the world, %d results are kept as evidence, %d of them resolved the question without a person, %d went to a person\n",
				z.name, a.zombies, a.begun, a.evidence, a.resolved, a.asked)
		}
	}
	return text.String()
}
