package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/model"
)

// Versions of what a run was begun with are in Task.Hashes. The node that takes
// an agent over says in its Resumed what it has otherwise; the record counts
// either way, and here it is decided whether the agent goes on by it without a
// word (F4): never. Tools that came, went or read otherwise are told. A prompt, a
// route or a directory that is not the same any more, and a tool that is of
// another class, wait for a person before anything begins.

// What is compared, as keys of Task.Hashes and Resumed.Found. A tool's is
// ToolVersion with its name, its hash "<class>:<hash>".
const (
	PromptVersion    = "prompt"
	PolicyVersion    = "policy" // recorded only: it reaches a run by its log alone
	HooksVersion     = "hooks"  // of the node's operator
	RouteVersion     = "route"
	WorkspaceVersion = "workspace"
	ToolVersion      = "tool/"
)

// RouteOf is the key of a model's route in the hashes of a run, which may have
// several.
func RouteOf(model string) string { return RouteVersion + "/" + model }

// FoundMax bounds the differences that a Resumed names.
const FoundMax = 64

// Drift is how the node in force differs from the record.
type Drift struct {
	Found  map[string]string // what it has instead; "" : it has none
	Agreed map[string]string // what a person let go on
	Query  string            // the question that is open about it
	From   Phase             // what the loop waited for when it was asked
	Spare  bool              // the lease that it waited for was given back meanwhile
	Held   Park              // a question that was open before, and waits behind this one
}

// grave are the differences that nobody has agreed to and that the agent does
// not go on with by itself, sorted.
func (s State) grave() []string {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(s.Drift.Found)) {
		found := s.Drift.Found[k]
		if agreed, ok := s.Drift.Agreed[k]; ok && agreed == found { //mutant:agreed-for-any-other
			continue
		}
		if s.isGrave(k, found) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (s State) isGrave(key, found string) bool {
	switch key {
	case PromptVersion, WorkspaceVersion: //mutant:other-prompt-goes-on
		return true
	case RouteVersion: // another price is only told
		return found == ""
	}
	name, ok := strings.CutPrefix(key, ToolVersion)
	i := slices.IndexFunc(s.Task.Tools, func(t model.ToolSpec) bool { return t.Name == name })
	if !ok || i < 0 || found == "" {
		return false
	}
	class, _, _ := strings.Cut(found, ":")
	return class != string(s.Task.Tools[i].Class) //mutant:other-class-goes-on
}

// halted: it waits for a person because of a difference.
func (s State) halted() bool { return s.Drift.Query != "" && s.Query.Query == s.Drift.Query }

// differs takes what a node says of itself; ok is false where nothing changes
// about the agent's going on.
func (s State) differs(f Resumed, whole bool) (next State, fx []Effect, ok bool) {
	if f.Looked {
		s.Drift.Found = f.Found
	}
	grave := s.grave()
	switch {
	case s.halted() && (len(grave) == 0 || s.Cancel != nil): // this node has what the record says
		s, fx = s.relieved()
		return s, fx, true
	case s.halted() && f.Looked:
		s, fx = s.halt(s.Drift.From)
		return s, fx, true
	case s.halted():
		return s, nil, true
	case len(grave) == 0 || s.Cancel != nil:
		return s, nil, false
	}
	switch s.Phase {
	case Thinking:
		fx = []Effect{Settle{Lease: s.Lease, Lost: !whole, Turn: s.Turn + 1}}
		s.Open = false
	case Acting:
		if whole {
			s = s.neverBegun()
		}
	case Waiting:
		if s.Idle || s.Pause.Waiting { // for what leads to a lease first
			return s, nil, false
		}
		s.Drift.Held = s.Query
	case Leasing, Hooking:
	default: // it is about to end; no lease is used before it is asked
		return s, nil, false
	}
	s, more := s.halt(s.Phase)
	return s, append(fx, more...), true
}

// halt asks a person whether the agent may go on by its record.
func (s State) halt(from Phase) (State, []Effect) {
	s.Asks++
	if s.Query.Query == "" {
		s.Parked = s.Now
	}
	s.Phase, s.Drift.From = Waiting, from
	s.Drift.Query = fmt.Sprintf("turn-%d.%d", s.Turn, s.Asks)
	s.Query = Park{Query: s.Drift.Query, Reason: ResumeUnsafe, Question: clip(s.drifted(), DetailBytesMax)}
	return s, []Effect{s.Query}
}

func (s State) drifted() string {
	var what []string
	for _, k := range s.grave() {
		what = append(what, fmt.Sprintf("%s (recorded %s, here %s)", k, s.recorded(k), orNone(s.Drift.Found[k])))
	}
	return fmt.Sprintf("Node %s has otherwise than this run was begun with: %s. approve: go on by the record; deny: end it here.", s.Node, strings.Join(what, ", "))
}

// recorded is what the task says of something that is compared.
func (s State) recorded(key string) string {
	if key == WorkspaceVersion {
		return orNone(s.Task.Workspace)
	}
	return orNone(s.Task.Hashes[key])
}

func orNone(hash string) string {
	if hash == "" {
		return "none"
	}
	return hash
}

// relieved goes on where the loop was when it was asked.
func (s State) relieved() (State, []Effect) {
	d := s.Drift
	s, fx := s.unpark()
	s.Drift = Drift{Found: d.Found, Agreed: d.Agreed}
	s.Phase = d.From
	switch {
	case d.Held.Query != "":
		return then(fx)(s.askedAgain(d.Held))
	case d.From == Thinking, d.From == Leasing && d.Spare:
		return then(fx)(anotherAttempt(s))
	case d.From == Acting:
		return then(fx)(lostCalls(s))
	case d.From == Hooking:
		return s, append(fx, s.atGate())
	case d.From == Waiting:
		return s, append(fx, Arm{Timer: retryTimer, Due: s.RetryDue})
	}
	return s, fx // the lease that it waits for is still to come
}

// spare gives back a lease that was granted while a person is to be asked first.
func (s State) spare() (State, []Effect) {
	fx := []Effect{Settle{Lease: s.Lease, Turn: s.Turn}}
	if !s.halted() {
		var more []Effect
		s, more = s.halt(Leasing)
		fx = append(fx, more...)
	}
	s.Drift.Spare = true //mutant:spared-lease-kept
	return s, fx
}

// anew is where the loop was before it was asked, for what ends the wait from outside.
func (s State) anew() State {
	if s.halted() && (s.Drift.From == Hooking || s.Drift.From == Leasing && !s.Drift.Spare) {
		s.Phase = s.Drift.From
	}
	return s
}

// askedAgain puts the question that waited behind this one; its call may have
// been answered by its own result meanwhile.
func (s State) askedAgain(q Park) (State, []Effect) {
	if i := s.call(q.Call); i >= 0 && s.Calls[i].Stage == Ended {
		s.Phase = Acting
		return advance(s)
	}
	s.Phase, s.Query, s.Parked = Waiting, q, s.Now
	return s, []Effect{q}
}

// agreed takes a person's word about a difference.
func agreed(s State, f Answered) (State, []Effect) {
	if f.Decision == "deny" {
		return canceled(s, Canceled{Why: strings.TrimSuffix("a person said no: "+strings.TrimSpace(f.Text), ": "), As: ResumeUnsafe})
	}
	s.Drift.Agreed = maps.Clone(s.Drift.Found)
	if text := strings.TrimSpace(f.Text); text != "" {
		s.Steers = append(slices.Clip(s.Steers), text)
	}
	return s.relieved()
}

// whileHalted takes a result that comes while a person is asked: it stands, and
// begins nothing.
func whileHalted(s State, i int, f Returned) (State, []Effect) {
	c := s.Calls[i]
	s.ToolMS += f.TookMS
	c.Tokens = f.Tokens
	return s.with(i, c.end(model.ToolResult{Text: f.Text, Error: f.Error})), nil
}
