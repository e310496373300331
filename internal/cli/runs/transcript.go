package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

// transcriptFlags select the parts of a transcript to show.
type transcriptFlags struct {
	agent string
	all   bool // struck messages too, and nothing clipped
	usage bool
	call  string // the id of the one call to show, as a question about it does, and all of it

	tree term.Tree // with the handoffs of the run, if the agent has made one or taken over by one
}

// Transcript makes the command transcript.
func (cs *Commands) Transcript() *cobra.Command {
	var flags transcriptFlags
	c := &cobra.Command{
		Use: "transcript RUN", Args: command.Exactly("RUN"),
		Short: "Show an agent's messages, tool calls and results",
		Long: `Show an agent's messages and its tool calls with their results; with -v also the usage
of each model reply. Long messages are clipped, and messages removed from the prompt are
left out; --all shows both. A line marks where a summary replaced older messages.
--call shows all of one call as a question about it does: a question shows the beginning
and the end of a long one.

With -o json messages are not clipped unless they exceed what a node can return.`,
		Example:     "  troupe transcript 01k9z3\n  troupe transcript 01k9z3 --agent historian -v\n  troupe transcript 01k9z3 -o json |\n    jq -r '.messages[] | select(.role == \"assistant\") | .text // empty'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			flags.usage, cs.Console.Verbose = cs.Console.Verbose, false // here -v does not mean the log of the node
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				return cs.printTranscript(ctx, s, run, flags)
			})
		},
	}
	c.Flags().StringVar(&flags.agent, "agent", "", command.AgentFlag+" (default root)")
	c.Flags().StringVar(&flags.call, "call", "", "show this call in full, in the form of an approval question")
	c.Flags().BoolVar(&flags.all, "all", false, "include messages removed from the prompt, and clip nothing")
	return c
}

// transcriptDoc is the node's answer.
type transcriptDoc struct {
	Agent, Name, System string
	Messages            []model.Message
	Folds               []client.Fold
}

func (cs *Commands) printTranscript(ctx context.Context, s *session.Session, run string, flags transcriptFlags) error {
	who, err := s.FindAgent(ctx, run, flags.agent)
	if err != nil {
		return err
	}
	raw, err := s.Transcript(ctx, run, who)
	if err != nil {
		return err
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintJSON(raw)
	}
	var t transcriptDoc
	if err := json.Unmarshal(raw, &t); err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	if flags.call != "" {
		return cs.printCall(t, run, flags.call)
	}
	if flags.tree, err = readHandoffs(ctx, s, run, t); err != nil {
		return err
	}
	return cs.Console.PrintLines(newTranscriptPage(cs.Console, t, flags).draw())
}

// printCall prints all of one call in the form of a question about it: nothing in it is hidden.
func (cs *Commands) printCall(t transcriptDoc, run, id string) error {
	for _, m := range slices.Backward(t.Messages) {
		for _, c := range m.Calls {
			if c.ID == id {
				return cs.Console.PrintLines(strings.Split(strings.TrimRight(permission.Show(c.Name, c.Args), "\n"), "\n"))
			}
		}
	}
	return exit.UsageError("troupe transcript "+run+" shows the calls of an agent; --agent names another one",
		"agent %s of run %s has no call %q", t.Agent, run, id)
}

const (
	argsBytes   = 200 // of a call that is shown
	resultLines = 8   // of a result that is shown
	indent      = "  "
)

// transcriptPage draws one transcript.
type transcriptPage struct {
	*console.Page
	style      term.Style
	transcript transcriptDoc
	flags      transcriptFlags
	calls      map[string]string // names of the calls that are open
}

func newTranscriptPage(c *console.Console, t transcriptDoc, flags transcriptFlags) *transcriptPage {
	return &transcriptPage{Page: c.NewTextPage(), style: c.Style, transcript: t, flags: flags, calls: map[string]string{}}
}

// draw returns the lines of the transcript.
func (p *transcriptPage) draw() []string {
	t := p.transcript
	p.AddLine(p.style.Bold(term.CleanLine(t.Name)) + " " + p.style.Dim("("+term.CleanLine(t.Agent)+")"))
	for _, l := range term.Wrap(console.CleanText(t.System), p.Width) {
		p.AddLine(p.style.Dim(l))
	}
	p.addTaken()
	folds := map[int]client.Fold{}
	for _, f := range t.Folds {
		folds[f.Upto] = f
	}
	for i, m := range t.Messages {
		if f, ok := folds[i]; ok {
			p.addCompaction(f)
		}
		if m.Tombstone && !p.flags.all {
			continue
		}
		p.addMessage(m)
		p.addGiven(m)
	}
	if f, ok := folds[len(t.Messages)]; ok {
		p.addCompaction(f)
	}
	return p.Lines
}

// addCompaction marks where a compaction replaced the messages above by a summary.
func (p *transcriptPage) addCompaction(f client.Fold) {
	word := "compacted"
	if f.Deep {
		word = "pruned deep"
	}
	what := "a summary"
	if f.Plain {
		what = "an excerpt"
	}
	p.AddLine("")
	p.AddLine(p.style.Yellow(fmt.Sprintf("── %s at turn %d: %s of %d bytes replaces the %d messages above", word, f.Turn, what, len(f.Text), f.Upto)))
}

func (p *transcriptPage) addMessage(m model.Message) {
	who := p.style.Cyan(string(m.Role))
	if m.Tombstone {
		who += p.style.Yellow(" (struck: not sent any more)")
	}
	if u := m.Usage; u != nil && p.flags.usage {
		who += p.style.Dim(fmt.Sprintf("  %s in, %s out, %s cached", term.FormatTokens(u.Prompt()), term.FormatTokens(u.Output), term.FormatTokens(u.CacheRead)))
	}
	p.AddLine("")
	p.AddLine(who)
	for _, l := range term.Wrap(console.CleanText(m.Text), p.Width) {
		if m.Text != "" {
			p.AddLine(l)
		}
	}
	for _, c := range m.Calls {
		p.calls[c.ID] = c.Name
		args := term.CleanLine(c.Args)
		if !p.flags.all {
			args = term.Truncate(args, argsBytes)
		}
		for i, l := range term.Wrap("→ "+term.CleanLine(c.ID)+" "+term.CleanLine(c.Name)+" "+args, p.Width-len(indent)) {
			if i > 0 {
				l = indent + l
			} else {
				l = strings.Replace(l, term.CleanLine(c.Name), p.style.Bold(term.CleanLine(c.Name)), 1)
			}
			p.AddLine(l)
		}
	}
	for _, r := range m.Results {
		p.addCallResult(r)
	}
}

// addCallResult draws the answer to a call: its first lines, and how much is left out.
func (p *transcriptPage) addCallResult(r model.ToolResult) {
	mark := "←"
	if r.Error {
		mark = p.style.Red("✗")
	}
	lines := term.Wrap(console.CleanText(r.Text), p.Width-len(indent))
	left := 0
	if !p.flags.all && len(lines) > resultLines {
		left, lines = len(lines)-resultLines, lines[:resultLines]
	}
	head := mark + " " + term.CleanLine(r.Call) + " " + p.style.Dim(term.CleanLine(p.calls[r.Call]))
	if len(lines) == 1 && term.Width(head)+1+term.Width(lines[0]) <= p.Width {
		p.AddLine(head + " " + lines[0])
		return
	}
	p.AddLine(head)
	for _, l := range lines {
		p.AddLine(indent + l)
	}
	if left > 0 {
		p.AddLine(indent + p.style.Dim(fmt.Sprintf("… %d more lines, %d bytes in all: --all shows them", left, len(r.Text))))
	}
}
