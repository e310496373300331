package runspec

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/toolname"
	"github.com/troupe-run/troupe/supervisor"
)

// The lethal trifecta: an agent that reads text from outside and private data and can send data out can
// be made to leak the data.

const taintHint = "see docs/taint.md"

// tightenTaint adds what other permissions say about text from outside. It only tightens.
func tightenTaint(p, other spec.Permissions) spec.Permissions {
	p.Taint, p.TaintFiles = permission.StricterTaint(p.Taint, other.Taint), p.TaintFiles || other.TaintFiles
	return p
}

// withRequestedTaint adds what a request says about text from outside. Only the user's own command may ask
// for less than the settings: nothing proves who wrote another request.
func withRequestedTaint(p, asked spec.Permissions, fromUser bool) (spec.Permissions, error) {
	if _, err := permission.ParseTaint(p.Taint); err != nil {
		return p, refuse.Bad(taintHint, "the permissions of the node have taint: %v", err)
	}
	p.TaintFiles = p.TaintFiles || asked.TaintFiles
	switch {
	case asked.Taint == "":
	case fromUser || permission.StricterTaint(asked.Taint, p.Taint) == asked.Taint:
		p.Taint = asked.Taint
	default:
		return p, refuse.Forbidden("leave taint out, or set it in the settings of the node",
			"taint is %s, and the node has %s: a request can only be stricter", asked.Taint, p.Taint)
	}
	return p, nil
}

// warnTrifecta names the agents that may read text from outside and private data and send data out: the author of
// such a text may get at the data.
func warnTrifecta(o supervisor.Opened) []string {
	var names []string
	for _, d := range o.Definitions {
		if d.Source == "" && d.Name != o.Root {
			continue
		}
		if t := TrifectaOf(o, d); t != nil {
			names = append(names, fmt.Sprintf("%q (%s)", d.Name, t.tools()))
		}
	}
	if names == nil {
		return nil
	}
	return []string{trifectaText +
		clip.Names(names, trifectaNamed)}
}

// trifectaText begins each note about agents that can do all three.
const trifectaText = "may read text from outside and private data, and send data out (docs/taint.md): "

// Bounds of the warning.
const (
	trifectaNamed = 4 // agents
	toolsNamed    = 2 // for each of the three
)

// Trifecta is what lets the author of a text get at private data: an agent has tools of all three kinds.
type Trifecta struct {
	Outside []string `json:"outside"` // tools by which the agent reads text from outside
	Private []string `json:"private"` // reads private data
	Sends   []string `json:"sends"`   // sends data out
}

// TrifectaOf returns the tools by which an agent reads text from outside, reads private data and sends data out; nil: it
// cannot do all three.
func TrifectaOf(o supervisor.Opened, d supervisor.Definition) *Trifecta {
	var t Trifecta
	files := o.Permissions != nil && o.Permissions.TaintFiles || d.Permissions != nil && d.Permissions.TaintFiles
	for _, s := range o.Tools {
		if d.Tools != nil && !slices.Contains(d.Tools, s.Name) || slices.Contains(d.Deny, s.Name) || d.Offer != nil && !slices.Contains(d.Offer, s.Name) {
			continue
		}
		data := permission.DataOf(s, slices.ContainsFunc(o.Commands, func(c spec.Command) bool { return c.Name == s.Name }), files)
		if s.Name == delegateTool && delegatesAbroad(o, d) { // the task leaves the machine, and a text of others comes back
			data.Outside, data.Sends = true, true
		}
		for _, use := range []struct {
			does bool
			list *[]string
		}{{data.Outside, &t.Outside}, {data.Private, &t.Private}, {data.Sends, &t.Sends}} {
			if use.does {
				*use.list = append(*use.list, s.Name)
			}
		}
	}
	if t.Outside == nil || t.Private == nil || t.Sends == nil {
		return nil
	}
	return &t
}

const delegateTool = toolname.Delegate

// delegatesAbroad reports whether an agent may delegate to an agent of another program.
func delegatesAbroad(o supervisor.Opened, d supervisor.Definition) bool {
	return slices.ContainsFunc(o.Definitions, func(to supervisor.Definition) bool { return to.Foreign && slices.Contains(d.Delegates, to.Name) })
}

// String is the note about the agent.
func (t Trifecta) String() string { return trifectaText + t.tools() }

func (t Trifecta) tools() string {
	return fmt.Sprintf("reads by %s; private data by %s; sends by %s", clip.Names(t.Outside, toolsNamed), clip.Names(t.Private, toolsNamed), clip.Names(t.Sends, toolsNamed))
}
