package recording

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/node"
)

// restoreFlags are the flags of restore.
type restoreFlags struct {
	request           client.RestoreRequest
	approved, answers []string
}

// Restore makes the command restore.
func (cs *Commands) Restore() *cobra.Command {
	var flags restoreFlags
	c := &cobra.Command{
		Use: "restore FILE", Args: command.Exactly("FILE"),
		Short: "Restore a run from a file that dump wrote",
		Long: `Restore a run from a file that "troupe dump" wrote: in another state directory, or on
another server. The run keeps its id, its history, its budget and its open questions, and
goes on where the file ends: what tools have done is not done again.

A node that runs continues the run at once; without one, "troupe run --resume RUN" does.
--approve and --answer decide about questions that are open in the file, before the run
continues.

A run that had not ended when it was dumped may run in one place only: two would use
the same idempotency keys. So --original-stopped must confirm that the original stopped.

The file is not trusted: it must keep the rules of the logs, and the run may do nothing
that a new run could not do here. --dir, --agents and --mcp-config name what it may use,
as for a new run (docs/dump.md). If --dir is not the directory of the file, it must be a
copy of it: the run goes on there, and its agents live in the node pool of this machine.`,
		Example: `  troupe restore run.jsonl --original-stopped; troupe run --resume 01k9z3
  troupe restore run.jsonl --original-stopped --accept-approvals --approve 2-0.1
  troupe restore run.jsonl --original-stopped \
    --answer root-1-0/1-0.1="use the second one"`,
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE:        func(_ *cobra.Command, args []string) error { return cs.restore(args[0], flags) },
	}
	q := &flags.request
	c.Flags().BoolVar(&q.OriginalStopped, "original-stopped", false,
		"confirm that no node runs the original, and none will")
	c.Flags().BoolVar(&q.AcceptApprovals, "accept-approvals", false, "accept approvals recorded in the file")
	c.Flags().StringArrayVar(&flags.approved, "approve", nil,
		"approve this open question: QUERY, or AGENT/QUERY; may be repeated")
	c.Flags().StringArrayVar(&flags.answers, "answer", nil,
		"answer an open question: QUERY=ANSWER, or AGENT/QUERY=ANSWER, where ANSWER is approve, deny, skip or a text; "+
			"may be repeated")
	c.Flags().StringVar(&q.Named.Agents, "agents", "", "directory of the agent files that the run may use")
	c.Flags().StringVar(&q.Named.Dir, "dir", "",
		"directory in which the run goes on: the one in which it worked, or a copy of it")
	c.Flags().StringVar(&q.Named.MCPConfig, "mcp-config", "", "MCP server config file that the run may use")
	c.Flags().StringVarP(&q.Named.Model, "model", "m", "", "script that the run may use as its model")
	return c
}

func (cs *Commands) restore(path string, flags restoreFlags) error {
	r, err := flags.complete(cs.Console.Getenv)
	if err != nil {
		return err
	}
	f, err := ReadFile(path)
	if err != nil {
		return err
	}
	if err := refuseRedacted(f); err != nil {
		return err
	}
	r.RunID = f.Header.Run
	for i := range r.Answers {
		if r.Answers[i].Agent, err = agentIn(f, r.Answers[i].Agent); err != nil {
			return err
		}
	}
	data, err := encode(f)
	if err != nil {
		return err
	}
	sig := interrupt.Catch()
	defer sig.Stop()
	s, err := cs.Sessions.Open(sig.Starting, session.ToInspect, rootsOf(r.Named)...)
	if err != nil {
		return err
	}
	done, err := cs.sendRestore(s, data, r)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	return cs.reportRestored(s, path, done)
}

// complete makes the request of the flags.
func (flags restoreFlags) complete(getenv func(string) string) (client.RestoreRequest, error) {
	r := flags.request
	if decides := r.AcceptApprovals || len(flags.approved)+len(flags.answers) > 0; decides && (getenv("TROUPE_CALL") != "" || getenv("TROUPE_HOOK") != "") {
		return r, exit.UsageError("a person answers, in a terminal of their own",
			"an agent cannot answer questions: this is a tool or a hook of a run")
	}
	for _, query := range flags.approved {
		r.Answers = append(r.Answers, parseAnswer(query, "approve"))
	}
	for _, text := range flags.answers {
		query, answer, ok := strings.Cut(text, "=")
		if !ok || query == "" || answer == "" {
			return r, exit.UsageError("write QUERY=ANSWER, such as --answer 2-0.1=approve",
				"--answer %q has no question or no answer", text)
		}
		a := parseAnswer(query, answer)
		if err := request.CheckAnswerText(a); err != nil {
			return r, err
		}
		r.Answers = append(r.Answers, a)
	}
	for _, path := range []*string{&r.Named.Agents, &r.Named.Dir, &r.Named.MCPConfig} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return r, fmt.Errorf("restore: %w", err)
		}
		*path = abs
	}
	return r, nil
}

// parseAnswer reads QUERY or AGENT/QUERY, and an answer.
func parseAnswer(query, answer string) client.AnswerRequest {
	agent, rest, ok := strings.Cut(query, "/")
	if !ok {
		agent, rest = "", query
	}
	return request.ParseAnswer("", agent, rest, answer)
}

// rootsOf are the places that a node in this process may use.
func rootsOf(r client.RunRequest) (roots []string) {
	for _, place := range []string{r.Dir, r.Agents, r.MCPConfig} {
		if place != "" {
			roots = append(roots, place)
		}
	}
	return roots
}

// sendRestore sends the file. The user has named the files in a command, so a node of the same state directory may use
// them.
func (cs *Commands) sendRestore(s *session.Session, data []byte, r client.RestoreRequest) (client.Restored, error) {
	cfg := node.Config{StateDir: cs.Sessions.StateDir}
	if err := node.ApproveRequest(cfg, r.Named); err != nil {
		return client.Restored{}, err
	}
	if s.OwnerPID > 0 || s.Node != nil {
		if err := node.BringPlaces(cfg, r.Named); err != nil {
			return client.Restored{}, err
		}
	}
	return client.Restore(s.Context, s.Client, data, r)
}

func (cs *Commands) reportRestored(s *session.Session, path string, done client.Restored) error {
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(done)
	}
	text := fmt.Sprintf("%s restored from %s: %d entries of %d logs, state %s", done.RunID, path, done.Entries, done.Logs, done.State)
	if done.Existed {
		text = fmt.Sprintf("%s was restored from %s before", done.RunID, path)
	}
	lines := []string{text}
	lines = append(lines, done.Notes...)
	switch {
	case done.State == client.RunFinished:
	case s.Node != nil:
		lines = append(lines, "no node runs here: "+s.Command("run --resume "+done.RunID)+" continues it")
	default:
		lines = append(lines, "a node continues it: "+s.Command("follow "+done.RunID)+" shows it")
	}
	return cs.Console.PrintLines(lines)
}
