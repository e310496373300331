package agents

import (
	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/investigator"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/supervisor"
)

func (cs *Commands) promptCommand() *cobra.Command {
	var g Sources
	return g.AddFlags(&cobra.Command{
		Use: "prompt NAME", Args: command.Exactly("NAME"),
		Short:       "Print an agent's system prompt as the model gets it",
		Example:     "  troupe agents prompt auditor\n  troupe agents prompt auditor -o json | jq .tools",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := g.ReadRoster()
			if err != nil {
				return err
			}
			if _, err := r.lookup(args[0]); err != nil {
				return err
			}
			return cs.printPrompt(g, args[0])
		},
	})
}

// promptDoc is what prompt prints as JSON.
type promptDoc struct {
	Name    string   `json:"name"`
	System  string   `json:"system"`
	Dynamic string   `json:"dynamic,omitempty"`
	Tools   []string `json:"tools"` // null: all of its parent's
}

// PreviewRun returns the entry that would open a run of an agent here, and the notes of the
// node; "" is the root agent.
func PreviewRun(sessions *session.Opener, g Sources, servers, name string) (supervisor.Opened, []string, error) {
	cfg, err := previewConfig(sessions)
	if err != nil {
		return supervisor.Opened{}, nil, err
	}
	o, accepted, err := node.PreviewRun(cfg, previewRequest(g, servers, name))
	return o, accepted.Notes, err
}

// PreviewOwnRun is PreviewRun with the permission rules of the user, as in a run that a command of the user starts.
func PreviewOwnRun(sessions *session.Opener, g Sources, name string) (supervisor.Opened, []string, error) {
	cfg, err := previewOwnConfig(sessions)
	if err != nil {
		return supervisor.Opened{}, nil, err
	}
	o, accepted, err := node.PreviewRun(cfg, previewRequest(g, "", name))
	return o, accepted.Notes, err
}

// previewRequest is the request for a run of an agent here.
func previewRequest(g Sources, servers, name string) client.RunRequest {
	return client.RunRequest{
		RunID:     client.NewID(),
		Prompt:    "preview",
		Agent:     name,
		Dir:       g.Dir,
		Agents:    g.Agents,
		MCPConfig: servers,
		Model:     investigator.Name,
	}
}

// previewConfig configures the node of a preview.
func previewConfig(sessions *session.Opener) (node.Config, error) {
	own, err := agentfile.LoadShared(config.UserFile())
	if err != nil {
		return node.Config{}, previewError(err)
	}
	return node.Config{
		StateDir:        sessions.StateDir,
		Env:             sessions.Console.Getenv,
		Tools:           own.Tools,
		A2AAgents:       own.A2AAgents,
		DelegateCharges: own.Charges,
		Servers:         session.UserServerFile(),
	}, nil
}

// previewOwnConfig is previewConfig with the permission rules of the user.
func previewOwnConfig(sessions *session.Opener) (node.Config, error) {
	c, err := previewConfig(sessions)
	if err != nil {
		return c, err
	}
	c.UserSettings = config.UserFile()
	if c, _, err = c.WithClaudeFiles(); err != nil {
		return c, previewError(err)
	}
	return c, nil
}

func previewError(err error) error {
	return &exit.Failure{Code: exit.Usage, Err: err, Hint: "troupe config validate shows all that is wrong"}
}

func (cs *Commands) printPrompt(g Sources, name string) error {
	o, _, err := PreviewRun(cs.Sessions, g, "", name)
	if err != nil {
		return err
	}
	for _, d := range o.Definitions {
		if d.Name != name {
			continue
		}
		doc := promptDoc{Name: d.Name, System: d.System, Dynamic: d.LoopOptions.Merge(o.LoopOptions).Dynamic, Tools: d.Tools}
		if cs.Console.Output != "table" {
			return cs.Console.PrintData(doc)
		}
		text := doc.System
		if doc.Dynamic != "" {
			text += "\n\n" + doc.Dynamic
		}
		return cs.Console.Print(text)
	}
	return exit.UsageError("troupe agents list shows them", "there is no agent %q", name)
}
