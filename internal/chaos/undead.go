package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/internal/trap"
)

// afterlife sums up what zombies did: nodes that were frozen at a place until
// somebody else had the actor that they were at, and then thawed.
type afterlife struct {
	zombies, begun, evidence, resolved, asked int
}

// lazarus finds out from the logs and the ledger what one zombie did.
func (t *theatre) lazarus(b *blow, f *folded, r *ran, effects map[string]int) {
	claims := f.claims[b.caught]
	key := b.caught + "." + b.call
	i := slices.IndexFunc(claims, func(c reign) bool { return c.start == b.life })
	for j, c := range claims { // of a tool only the call is known
		if _, began := f.starts[key][c.start]; began && b.life == "" && c.node == b.node && c.at <= b.at.UnixMilli() {
			i = j
		}
	}
	switch {
	case i < 0:
		t.found.of(r.id, "%s was caught on %s at %s, and no life of it there is in its log", b.caught, b.node, b.place)
		return
	case i == len(claims)-1:
		t.found.of(r.id, "%s was frozen on %s at %s, and nobody claimed it meanwhile", b.caught, b.node, b.place)
		return
	}
	zombie := claims[i].start
	others := 0
	for start, n := range f.starts[key] {
		if start != zombie {
			others += n
		}
	}
	sum := t.afterlives[b.group()]
	sum.zombies++
	defer func() { t.afterlives[b.group()] = sum }()
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
	case inside, trap.ToolAfter:
		if !evidence {
			t.found.of(r.id, "%s: a call that %s had begun when it was frozen at %s returned, and that is not in the log", key, b.node, b.place)
		}
	default:
		if effects[key] > others {
			t.found.of(r.id, "%s was begun by %s, which had been frozen at %s, after a later claim", key, b.node, b.place)
		}
	}
}

// group is what had happened to the call where the node was frozen.
func (b *blow) group() string {
	for _, z := range zombies {
		if slices.Contains(z.places, b.place) {
			return z.name
		}
	}
	return ""
}

func agentOf(at string) string { _, agent, _ := strings.Cut(at, "."); return agent }

func runOf(at string) string { run, _, _ := strings.Cut(at, "."); return run }

// judgeUndead looks at all zombies of a run.
func (t *theatre) judgeUndead(f *folded, r *ran, effects map[string]int) {
	for _, b := range t.blows {
		if b.kind == undead && b.caught != "" && runOf(b.caught) == r.id {
			t.lazarus(b, f, r, effects)
		}
	}
}

// undeadTold is a line for each group of zombies.
func (t *theatre) undeadTold() string {
	var text strings.Builder
	for _, z := range zombies {
		if a := t.afterlives[z.name]; a.zombies > 0 {
			fmt.Fprintf(&text, "zombies %s: %d; %d effects of theirs came to the world, %d results are kept as evidence, %d of them resolved the question without a person, %d went to a person\n",
				z.name, a.zombies, a.begun, a.evidence, a.resolved, a.asked)
		}
	}
	return text.String()
}
