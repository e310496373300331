package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/model"
)

// transcriptFlags select the parts of a transcript to show.
type transcriptFlags struct {
	agent string
	all   bool // struck messages too, and nothing clipped
	usage bool
}

func (a *runsCommands) transcriptCommand() *cobra.Command {
	var flags transcriptFlags
	c := &cobra.Command{
		Use: "transcript RUN", Args: exactly("RUN"),
		Short: "Show what an agent was told, what it said and called",
		Long: `Show what an agent was told, what it said, and the calls of its tools with their
results; with -v what each reply of the model used. Long ones are clipped; messages that were struck from the prompt are left
out: --all shows them. Where the beginning was folded into a summary, a line says so.

With -o json the messages are whole, as far as they fit a reply of the node.`,
		Example:     "  troupe transcript 01k9z3\n  troupe transcript 01k9z3 --agent historian -v\n  troupe transcript 01k9z3 -o json | jq -r '.messages[] | select(.role == \"assistant\") | .text'",
		Annotations: map[string]string{formats: dataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			flags.usage, a.console.verbose = a.console.verbose, false // here -v does not mean the log of the node
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error { return a.transcript(ctx, s, args[0], flags) })
		},
	}
	c.Flags().StringVar(&flags.agent, "agent", "", "agent's id, or its name if only one has it (default root)")
	c.Flags().BoolVar(&flags.all, "all", false, "also what was struck, and nothing clipped")
	return c
}

// transcript is the node's answer.
type transcript struct {
	Agent, Name, System string
	Messages            []model.Message
	Folds               []client.Fold
}

func (a *runsCommands) transcript(ctx context.Context, s *seat, run string, flags transcriptFlags) error {
	who, err := a.agentOf(ctx, s, run, flags.agent)
	if err != nil {
		return err
	}
	raw, err := s.Transcript(ctx, run, who)
	if err != nil {
		return err
	}
	if a.console.output != "table" {
		return a.console.printJSON(raw)
	}
	var t transcript
	if err := json.Unmarshal(raw, &t); err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	return a.console.lines(a.transcriptText(t, flags))
}

// agentOf finds an agent by its id, or by a name that only one has.
func (a *runsCommands) agentOf(ctx context.Context, s *seat, run, word string) (string, error) {
	if word == "" {
		return "", nil
	}
	info, err := s.Get(ctx, run)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, m := range agents(info.Result) {
		if string(m.ID) == word {
			return word, nil
		}
		if m.Name == word {
			ids = append(ids, string(m.ID))
		}
	}
	switch len(ids) {
	case 1:
		return ids[0], nil
	case 0:
		return "", usage("troupe tree "+run+" shows the agents", "run %s has no agent %q", run, word)
	}
	return "", usage("name one by its id: "+strings.Join(ids, ", "), "run %s has %d agents %q", run, len(ids), word)
}

const (
	argsBytes   = 200 // of a call that is shown
	resultLines = 8   // of a result that is shown
	indent      = "  "
)

// transcriptText draws a transcript.
func (a *runsCommands) transcriptText(t transcript, flags transcriptFlags) []string {
	p := a.console.page()
	p.line(a.console.style.Bold(term.Line(t.Name)) + " " + a.console.style.Dim("("+term.Line(t.Agent)+")"))
	for _, l := range term.Wrap(cleanText(t.System), p.width) {
		p.line(a.console.style.Dim(l))
	}
	folds := map[int]client.Fold{}
	for _, f := range t.Folds {
		folds[f.Upto] = f
	}
	calls := map[string]string{} // names of the calls that are open
	for i, m := range t.Messages {
		if f, ok := folds[i]; ok {
			a.fold(p, f)
		}
		if m.Tombstone && !flags.all {
			continue
		}
		a.message(p, m, calls, flags)
	}
	if f, ok := folds[len(t.Messages)]; ok {
		a.fold(p, f)
	}
	return p.lines
}

// fold marks where a compaction replaced the messages above by a summary.
func (a *runsCommands) fold(p *page, f client.Fold) {
	word := "compacted"
	if f.Deep {
		word = "pruned deep"
	}
	what := "a summary"
	if f.Plain {
		what = "an excerpt"
	}
	p.line("")
	p.line(a.console.style.Yellow(fmt.Sprintf("── %s at turn %d: %s of %d bytes stands for the %d messages above", word, f.Turn, what, len(f.Text), f.Upto)))
}

func (a *runsCommands) message(p *page, m model.Message, calls map[string]string, flags transcriptFlags) {
	who := a.console.style.Cyan(string(m.Role))
	if m.Tombstone {
		who += a.console.style.Yellow(" (struck: not sent any more)")
	}
	if u := m.Usage; u != nil && flags.usage {
		who += a.console.style.Dim(fmt.Sprintf("  %s in, %s out, %s cached", term.Tokens(u.Prompt()), term.Tokens(u.Output), term.Tokens(u.CacheRead)))
	}
	p.line("")
	p.line(who)
	for _, l := range term.Wrap(cleanText(m.Text), p.width) {
		if m.Text != "" {
			p.line(l)
		}
	}
	for _, c := range m.Calls {
		calls[c.ID] = c.Name
		args := term.Line(c.Args)
		if !flags.all {
			args = term.Cut(args, argsBytes)
		}
		for i, l := range term.Wrap("→ "+term.Line(c.ID)+" "+term.Line(c.Name)+" "+args, p.width-len(indent)) {
			if i > 0 {
				l = indent + l
			} else {
				l = strings.Replace(l, term.Line(c.Name), a.console.style.Bold(term.Line(c.Name)), 1)
			}
			p.line(l)
		}
	}
	for _, r := range m.Results {
		a.callResult(p, r, calls[r.Call], flags.all)
	}
}

// callResult draws the answer to a call: its first lines, and how much is left out.
func (a *runsCommands) callResult(p *page, r model.ToolResult, tool string, all bool) {
	mark := "←"
	if r.Error {
		mark = a.console.style.Red("✗")
	}
	lines := term.Wrap(cleanText(r.Text), p.width-len(indent))
	left := 0
	if !all && len(lines) > resultLines {
		left, lines = len(lines)-resultLines, lines[:resultLines]
	}
	head := mark + " " + term.Line(r.Call) + " " + a.console.style.Dim(term.Line(tool))
	if len(lines) == 1 && term.Width(head)+1+term.Width(lines[0]) <= p.width {
		p.line(head + " " + lines[0])
		return
	}
	p.line(head)
	for _, l := range lines {
		p.line(indent + l)
	}
	if left > 0 {
		p.line(indent + a.console.style.Dim(fmt.Sprintf("… %d more lines, %d bytes in all: --all shows them", left, len(r.Text))))
	}
}
