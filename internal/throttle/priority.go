package throttle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Priority orders runs at a throttle. The zero value is PriorityNormal.
type Priority string

// The priorities.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = "normal"
	PriorityLow    Priority = "low"
)

// ErrPriority says that a word is no priority.
var ErrPriority = errors.New("throttle: no priority")

// priorities are all, the highest first: a priority is known by its rank.
var priorities = [...]Priority{PriorityHigh, PriorityNormal, PriorityLow}

// ParsePriority returns the priority of a word; "" is PriorityNormal.
func ParsePriority(word string) (Priority, error) {
	if word == "" {
		return PriorityNormal, nil
	}
	if slices.Contains(priorities[:], Priority(word)) {
		return Priority(word), nil
	}
	names := make([]string, 0, len(priorities))
	for _, p := range priorities {
		names = append(names, string(p))
	}
	return "", fmt.Errorf("%w: %q is none of %s", ErrPriority, word, strings.Join(names, ", "))
}

// rank is the place of a priority in the order; an unknown one has that of PriorityNormal.
func (p Priority) rank() int {
	if i := slices.Index(priorities[:], p); i >= 0 {
		return i
	}
	return slices.Index(priorities[:], PriorityNormal)
}

// IsAbove reports whether a priority is higher than another one.
func (p Priority) IsAbove(other Priority) bool { return p.rank() < other.rank() }

// rankInTurn returns the rank whose run has the next turn: the lowest one that has left its turns to others for long
// enough, or else the highest one that waits. ok is false if no run waits.
func (q fairQueue) rankInTurn() (rank int, ok bool) {
	for rank := len(priorities) - 1; rank > 0; rank-- {
		if q.rings[rank].Len() > 0 && q.passed[rank] >= q.leaves[rank] { //mutant:low-priority-has-turns
			return rank, true
		}
	}
	for rank := range priorities {
		if q.rings[rank].Len() > 0 {
			return rank, true
		}
	}
	return 0, false
}

// countTurn counts a turn of a rank: the other ranks that wait have passed it. A rank keeps its count when its last
// request leaves without a turn, so callers that give up and come back do not start anew.
func (q fairQueue) countTurn(rank int) fairQueue {
	for other := range priorities {
		switch {
		case other == rank:
			q.passed[other] = 0
		case q.rings[other].Len() > 0:
			q.passed[other]++
		}
	}
	return q
}
