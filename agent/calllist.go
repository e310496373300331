package agent

import (
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/model"
)

// callList holds the calls of one reply, in the order asked.
type callList []Call

// find returns the index of a call, or -1.
func (l callList) find(id string) int {
	return slices.IndexFunc(l, func(c Call) bool { return c.ID == id })
}

// ended reports whether every call has its result.
func (l callList) ended() bool {
	return !slices.ContainsFunc(l, func(c Call) bool { return c.Stage != Ended })
}

// results returns the results in the order of the calls, and their size in tokens.
func (l callList) results() (results []model.ToolResult, tokens int64) {
	results = make([]model.ToolResult, len(l))
	for i, c := range l {
		results[i] = c.Result //mutant:results-out-of-order
		tokens += c.resultTokens()
	}
	return results, tokens
}

// onlyChildrenRun reports whether children run, and nothing else is in progress.
func (l callList) onlyChildrenRun() bool {
	children := 0
	for _, c := range l {
		switch {
		case c.Stage == Running && c.Kind.isDelegation():
			children++
		case c.Stage == Gated && c.Gate.Person != "": // its question is asked when the batch has ended
		case c.Stage == Running || c.Stage == Starting || c.Stage == Retrying || c.Stage == Gated:
			return false
		}
	}
	return children > 0
}

// forPerson returns the index of the first call about which a person decides; -1 if
// there is none, or another call is still in progress.
func (l callList) forPerson() int {
	first := -1
	for i, c := range l {
		switch {
		case c.Stage == Ended || c.Stage == Pending:
		case c.Gate.Person == "":
			return -1
		case first < 0:
			first = i
		}
	}
	return first
}

// mayBegin reports whether a call may begin now. Consecutive safe calls form a batch, and a
// bounded number of them runs in parallel; any other call runs alone, after all calls before it.
func (l callList) mayBegin(i int, limits *spec.Limits) bool {
	c := &l[i]
	if c.Stage != Pending {
		return false
	}
	for j := range l[:i] {
		if before := &l[j]; before.Stage != Ended && !(c.runsParallel() && before.runsParallel()) {
			return false //mutant:effect-beside-others
		}
	}
	tools, children := 0, 0
	for j := range l {
		switch d := &l[j]; {
		case d.Stage != Starting && d.Stage != Running && d.Stage != Gated:
		case d.Kind.isDelegation():
			children++
		default:
			tools++
		}
	}
	if c.Kind.isDelegation() {
		return children < limits.Children
	}
	return tools < limits.Parallel
}

// gatedBy returns the index of the call at whose gate an answer arrived, or -1.
func (l callList) gatedBy(f Hooked) int {
	return slices.IndexFunc(l, func(c Call) bool {
		return c.Stage == Gated && c.Gate.Person == "" && c.Gate.Point == f.Point && c.gateID() == f.ID //mutant:answer-of-another-call's-gate
	})
}

// countRunnable counts the calls that will run.
func (l callList) countRunnable() int {
	n := 0
	for _, c := range l {
		if c.Stage != Ended {
			n++
		}
	}
	return n
}
