package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/promptlayer"
	"github.com/troupe-run/troupe/internal/term"
)

// contextFlags are the changes that context makes.
type contextFlags struct {
	agent    string
	layers   []string
	removed  []string
	priority int
	below    bool
	merge    bool
	add      []string
	without  []string
}

// Context makes the command context.
func (cs *Commands) Context() *cobra.Command {
	var f contextFlags
	c := &cobra.Command{
		Use: "context RUN", Args: command.Exactly("RUN"),
		Short: "Show an agent's system prompt and tools, or change them",
		Long: `Show the system prompt of an agent as its layers, and the tools that it is offered. With
a flag, change them: from the next request on. The logs hold each change, so that a
replay makes the same requests. docs/context.md explains layers.

A layer takes the place of the agent's own layer of its name, and of the part of its
definition of that name (system, context). --below passes it on to the agents below,
those that live and those that begin later. A removed tool is removed from them, too.`,
		Example: `  troupe context last
  troupe context last --layer tone="Answer in one sentence."
  troupe context last --layer house=@rules.md --below
  troupe context last --remove-layer tone
  troupe context last --agent root-1-0 --remove-tool shell`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := f.request(cs.Console.Getenv)
			if err != nil {
				return err
			}
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				r.RunID = run
				if r.Agent, err = s.FindAgent(ctx, run, f.agent); err != nil {
					return err
				}
				if !r.Changes() {
					return cs.showContext(ctx, s, r)
				}
				if err := client.SetContext(ctx, s.Client, r); err != nil {
					return err
				}
				return cs.printRecorded(ctx, s, run)
			})
		},
	}
	c.Flags().StringVar(&f.agent, "agent", "", command.AgentFlag+" (default: the one that has the conversation)")
	c.Flags().StringArrayVar(&f.layers, "layer", nil, "set a layer: NAME=TEXT, or NAME=@FILE; may be repeated")
	c.Flags().StringArrayVar(&f.removed, "remove-layer", nil, "remove the layer NAME; may be repeated")
	c.Flags().IntVar(&f.priority, "priority", 0,
		"place of the layers in the prompt, 1 to 1000 (default 50): the definition has 10, date and directory have 100")
	c.Flags().BoolVar(&f.below, "below", false, "agents below inherit the layers")
	c.Flags().BoolVar(&f.merge, "merge", false,
		"send the layers after the inherited ones of their names, not in their place")
	c.Flags().StringArrayVar(&f.add, "add-tool", nil, "offer the agent a tool; may be repeated")
	c.Flags().StringArrayVar(&f.without, "remove-tool", nil,
		"take a tool from the agent and those below it; may be repeated")
	return c
}

// request makes the request of the flags, without its run.
func (f contextFlags) request(getenv func(string) string) (client.ContextRequest, error) {
	r := client.ContextRequest{Agent: f.agent, AddTools: f.add, RemoveTools: f.without}
	layers, err := request.ParseLayers(f.layers)
	if err != nil {
		return r, err
	}
	for _, l := range layers {
		l.Priority, l.Below, l.Merge = f.priority, f.below, f.merge
		r.Layers = append(r.Layers, l)
	}
	for _, name := range f.removed {
		r.Layers = append(r.Layers, spec.Layer{Name: name})
	}
	for _, l := range r.Layers {
		if err := promptlayer.Validate(l); err != nil {
			return r, exit.UsageError("docs/context.md explains layers", "%v", err)
		}
	}
	if r.Changes() {
		r.By = request.UserName()
	}
	if r.Changes() && (getenv("TROUPE_CALL") != "" || getenv("TROUPE_HOOK") != "") {
		return r, exit.UsageError("a person does it, in a terminal of their own",
			"an agent cannot change what agents are told and may call: this is a tool or a hook of a run")
	}
	if len(f.layers) == 0 && (f.priority != 0 || f.below || f.merge) {
		return r, exit.UsageError("name a layer: --layer NAME=TEXT",
			"--priority, --below and --merge say how a layer is sent, and none is set")
	}
	return r, nil
}

// showContext shows the layers of an agent's prompt, and its tools.
func (cs *Commands) showContext(ctx context.Context, s *session.Session, r client.ContextRequest) error {
	a, err := client.Context(ctx, s.Client, r.RunID, r.Agent)
	if err != nil {
		return err
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(a)
	}
	p := cs.Console.NewPage()
	p.AddPairs([2]string{"agent", string(a.Agent) + " (" + term.CleanLine(a.Name) + ")"}, [2]string{"tools", strings.Join(a.Tools, ", ")})
	if a.Waiting {
		p.AddLine("a change of this waits for the agent's next request")
	}
	for _, l := range a.Layers {
		p.AddHeading(layerTitle(a, l))
		p.Lines = append(p.Lines, strings.Split(term.CleanText(l.Text), "\n")...)
	}
	return cs.Console.PrintLines(p.Lines)
}

func layerTitle(a client.AgentContext, l spec.Layer) string {
	title := fmt.Sprintf("%s, priority %d", l.Name, l.Priority)
	if l.Owner != "" && l.Owner != a.Name {
		title += ", by " + term.CleanLine(l.Owner)
	}
	if l.Agent != a.Agent {
		title += ", inherited from " + string(l.Agent)
	}
	if l.Below {
		title += ", passed on"
	}
	return title
}
