package filechange

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/mailbox"
)

// Recorded is a change as the log of an agent records it.
type Recorded struct {
	Agent string `json:"agent"`
	Call  string `json:"call"`
	spec.FileChange
	at mailbox.Stamp
}

// History is what the logs of a run record of its directory.
type History struct {
	Dir     string // of the root's task
	Changes []Recorded
	Lost    []string // calls with changes that are not recorded, with the reason
}

// Add adds what a call changed, as the entry with the stamp records it.
func (h *History) Add(agent, call string, at mailbox.Stamp, files []spec.FileChange, lost string) {
	for _, c := range files {
		h.Changes = append(h.Changes, Recorded{agent, call, c, at})
	}
	if lost != "" {
		h.Lost = append(h.Lost, fmt.Sprintf("call %s of %s: %s", call, agent, lost))
	}
}

// Net is what became of one file.
type Net struct {
	Path          string         `json:"path"`
	Before        spec.FileState `json:"before"`
	After         spec.FileState `json:"after"`
	Agents        []string       `json:"agents"`
	Refused       string         `json:"refused,omitempty"` // why it cannot be taken back; "": by the logs it can
	SameAsAtFirst bool           `json:"-"`
}

// Nets returns what became of each file, by path: of one agent, or of all ("").
func (h History) Nets(agent string) (list []Net) {
	chains, changes := map[string][]Recorded{}, slices.Clone(h.Changes)
	slices.SortStableFunc(changes, func(a, b Recorded) int { return a.at.Compare(b.at) })
	for _, c := range changes {
		chain := chains[c.Path]
		if n := len(chain); n > 0 && sameContent(chain[n-1].Before, c.Before) && sameContent(chain[n-1].After, c.After) && chain[n-1].Before != chain[n-1].After {
			continue // a command that ran meanwhile saw the same change
		}
		chains[c.Path] = append(chain, c)
	}
	for path, chain := range chains {
		if n, ok := netOf(path, chain, agent); ok {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b Net) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// netOf returns what an agent made of a file: its last changes without those of others between them.
func netOf(path string, chain []Recorded, agent string) (n Net, ok bool) {
	is := func(c Recorded) bool { return agent == "" || c.Agent == agent }
	first := slices.IndexFunc(chain, is)
	if first < 0 {
		return n, false
	}
	last := first
	for i, c := range chain {
		if is(c) {
			last = i
			if !slices.Contains(n.Agents, c.Agent) {
				n.Agents = append(n.Agents, c.Agent)
			}
		}
	}
	n.Path, n.Before, n.After = path, chain[first].Before, chain[last].After
	for i := first; i < len(chain) && n.Refused == ""; i++ {
		switch {
		case !is(chain[i]):
			n.Refused = fmt.Sprintf("%s changed it, too, in call %s", chain[i].Agent, chain[i].Call)
		case i > first && !sameContent(chain[i-1].After, chain[i].Before):
			n.Refused = fmt.Sprintf("something that is not recorded changed it before call %s of %s", chain[i].Call, chain[i].Agent)
		}
	}
	if err := checkPath(path); err != nil {
		n.Refused = err.Error()
	}
	n.SameAsAtFirst = sameContent(n.Before, n.After) && n.Before.Mode == n.After.Mode
	return n, true
}
