package runs

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client/audit"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Audit makes the command audit.
func (cs *Commands) Audit() *cobra.Command {
	return &cobra.Command{
		Use: "audit RUN", Args: command.Exactly("RUN"),
		Short: "Show who allowed which calls of a run",
		Long: `Show, in the order of time, each call with a side effect and each call that a rule, the
permission mode, a hook or a person decided about: on which arguments, with the SHA-256 of
the call, whether it began and how it ended; and each change of the policy, the limits and
the rules of the run. Control characters in arguments are shown as escapes.`,
		Example:     "  troupe audit 01k9z3\n  troupe audit 01k9z3 -o json |\n    jq '.entries[] | select(.call.outcome == \"unknown\")'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				a, err := audit.Read(ctx, s, run)
				if err != nil {
					return err
				}
				if cs.Console.Output != "table" {
					return cs.Console.PrintData(a)
				}
				p := cs.Console.NewPage()
				for _, e := range a.Entries {
					cs.drawAuditEntry(p, e)
				}
				return cs.Console.PrintLines(p.Lines)
			})
		},
	}
}

func (cs *Commands) drawAuditEntry(p *console.Page, e *audit.Entry) {
	who := ""
	if e.Agent != "" {
		who = " " + cs.Console.Style.Bold(term.CleanLine(e.Name)) + " " + cs.Console.Style.Dim(term.CleanLine(e.Agent))
	}
	if e.Call == nil {
		by := ""
		if e.By != "" {
			by = " by " + term.CleanLine(e.By)
			if e.Kind == audit.KindCancel { // a person, who may be called as an agent is
				by = " by user " + term.CleanLine(e.By)
			}
		}
		addWrapped(p, "", e.At+who+" "+e.Kind+": "+term.CleanLine(e.Text)+by)
		return
	}
	c := e.Call
	addWrapped(p, "", fmt.Sprintf("%s%s %s %s %s: %s", e.At, who, term.CleanLine(c.ID), cs.Console.Style.Bold(term.CleanLine(c.Tool)), cs.Console.Style.Dim(term.CleanLine(string(c.Class))), cs.outcomeText(c)))
	if c.Arguments != "" {
		addWrapped(p, indent, term.CleanLine(c.Arguments))
	}
	switch {
	case c.Digest != "":
		addWrapped(p, indent, "sha256 "+term.CleanLine(c.Digest))
	case c.ArgumentDigest != "":
		addWrapped(p, indent, "arguments sha256 "+term.CleanLine(c.ArgumentDigest))
	}
	if q := c.Question; q != nil {
		addWrapped(p, indent, questionText(q))
	}
	for _, d := range c.Decisions {
		addWrapped(p, indent, decisionText(d))
	}
	if len(c.Decisions) == 0 && c.Question == nil && c.Attempts > 0 {
		p.AddLine(indent + "nobody was asked: within what the run was granted")
	}
}

// addWrapped adds a text in as many lines as it needs: an audit leaves nothing out.
func addWrapped(p *console.Page, before, text string) {
	for _, l := range term.Wrap(text, p.Width-len(before)) {
		p.AddLine(before + l)
	}
}

func (cs *Commands) outcomeText(c *audit.Call) string {
	text := c.Outcome
	switch c.Outcome {
	case audit.Unknown:
		text = cs.Console.Style.Red("outcome unknown")
	case audit.NotBegun, audit.Failed:
		text = cs.Console.Style.Yellow(text)
	case audit.Succeeded:
		text += fmt.Sprintf(", %d bytes", c.ResultBytes)
	}
	if c.Attempts > 1 {
		text += fmt.Sprintf(", %d attempts", c.Attempts)
	}
	if c.Lost > 0 && c.Outcome != audit.Unknown {
		text += fmt.Sprintf(", %d of them lost", c.Lost)
	}
	if c.Ended != "" && c.Attempts > 0 {
		text += ", ended " + c.Ended
	}
	if c.Error != "" {
		text += ": " + term.CleanLine(c.Error)
	}
	return text
}

func questionText(q *audit.Question) string {
	text := fmt.Sprintf("asked %s (%s)", q.At, term.CleanLine(q.Query))
	if q.Expires != "" {
		text += ", expires " + q.Expires
	}
	if q.Approvals > 1 {
		text += fmt.Sprintf(", needs %d people", q.Approvals)
	}
	if q.Open {
		text += ", open"
	}
	return text
}

func decisionText(d audit.Decision) string {
	word := map[string]string{"allow": "allowed", "approve": "approved", "deny": "denied", "skip": "skipped", "override": "answered instead", "text": "answered instead", "pass": "arguments rewritten", "trip": "run stopped", "ask": "denied, nobody to ask"}[string(d.Decision)]
	if word == "" {
		word = term.CleanLine(string(d.Decision))
	}
	if d.Advance {
		word += " in advance"
	}
	text := word + " by "
	switch d.Author {
	case audit.ByRule:
		text += "the rule " + term.CleanLine(d.Rule)
		if d.From != "" {
			text += " (" + term.FormatRuleOrigin(d.From) + ")"
		}
	case audit.ByMode:
		text += "the permission mode"
	case audit.ByYes:
		text += "--yes"
	case audit.ByHook:
		text += "the hook " + term.CleanLine(strings.Join(d.By, ", "))
	case audit.ByClock:
		text += "the clock: the question expired"
	default:
		text += term.CleanLine(cmp.Or(strings.Join(d.By, " and "), "a person"))
	}
	text += " at " + d.At
	if d.Always != "" {
		text += ", with --always " + term.CleanLine(d.Always)
	}
	if d.Arguments != "" {
		text += ", with " + term.CleanLine(d.Arguments)
	}
	if d.Why != "" && !(d.Author == audit.ByRule && d.Advance) { // "the rule … allows it"
		text += ": " + term.CleanLine(d.Why)
	}
	return text
}
