package runspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/supervisor"
)

// The lethal trifecta: an agent that reads text from outside and private data and can send data out can
// be made to leak the data.

const taintHint = "see docs/taint.md"

// tightenTaint adds what other permissions say about text from outside. It only tightens.
func tightenTaint(p, other spec.Permissions) spec.Permissions {
	p.Taint, p.TaintFiles = spec.StricterTaint(p.Taint, other.Taint), p.TaintFiles || other.TaintFiles
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
	case fromUser || spec.StricterTaint(asked.Taint, p.Taint) == asked.Taint:
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
		if list := trifectaOf(o, d); list != "" {
			names = append(names, fmt.Sprintf("%q (%s)", d.Name, list))
		}
	}
	if names == nil {
		return nil
	}
	return []string{"may read text from outside and private data, and send data out (docs/taint.md): " +
		strings.Join(names[:min(len(names), trifectaNamed)], ", ") + andMore(len(names)-trifectaNamed)}
}

// Bounds of the warning.
const (
	trifectaNamed = 4 // agents
	toolsNamed    = 2 // for each of the three
)

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// trifectaOf names the tools by which an agent reads text from outside, reads private data and sends data out; "": it
// cannot do all three.
func trifectaOf(o supervisor.Opened, d supervisor.Definition) string {
	var outside, private, sends []string
	files := o.Permissions != nil && o.Permissions.TaintFiles || d.Permissions != nil && d.Permissions.TaintFiles
	for _, t := range o.Tools {
		if d.Tools != nil && !slices.Contains(d.Tools, t.Name) || slices.Contains(d.Deny, t.Name) || d.Offer != nil && !slices.Contains(d.Offer, t.Name) {
			continue
		}
		data := permission.DataOf(t, slices.ContainsFunc(o.Commands, func(c spec.Command) bool { return c.Name == t.Name }), files)
		for _, use := range []struct {
			does bool
			list *[]string
		}{{data.Outside, &outside}, {data.Private, &private}, {data.Sends, &sends}} {
			if use.does {
				*use.list = append(*use.list, t.Name)
			}
		}
	}
	if outside == nil || private == nil || sends == nil {
		return ""
	}
	return fmt.Sprintf("reads by %s; private data by %s; sends by %s", joinSome(outside), joinSome(private), joinSome(sends))
}

func joinSome(names []string) string {
	return strings.Join(names[:min(len(names), toolsNamed)], ", ") + andMore(len(names)-toolsNamed)
}
