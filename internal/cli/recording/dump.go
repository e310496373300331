package recording

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/runfile"
)

// Dump makes the command dump.
func (cs *Commands) Dump() *cobra.Command {
	var path, who string
	var redacted bool
	c := &cobra.Command{
		Use: "dump RUN", Args: command.Exactly("RUN"),
		Short: "Write a run at a consistent cut as one file",
		Long: `Write a whole run as one file: every log of the tree, with histories, journals, budgets,
pending calls, open questions and policy, and the blobs that the logs name. The run may
be running, waiting or finished. A running run is written at a consistent cut: a state
that the whole tree could have been in. replay, verify, fixture, diff and undo read the file
without a node (docs/dump.md).

The file holds what the logs hold: prompts, results and answers. With --redact it has no
content: only which agent sent which kind of message, and when. Such a file cannot be
replayed.

With --agent the file has one agent, such as root-1-0, and those below it, as a run of its
own: the agent is its root, with its history, journal, pending calls and open questions, and
with the budget that the other agents have left.`,
		Example: `  troupe dump last -O run.jsonl; troupe verify ./run.jsonl
  troupe dump 01k9z3 | gzip > run.jsonl.gz
  troupe dump 01k9z3 --agent root-1-0 -O agent.jsonl
  troupe dump 01k9z3 --redact -O report.jsonl`,
		Annotations: map[string]string{command.Formats: "json jsonl yaml"},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.Sessions.VisitRun(session.ToInspect, args[0], func(ctx context.Context, s *session.Session, run string) error {
				f, err := readDump(ctx, s.Client, run)
				id := ""
				if err == nil {
					id, err = agentIn(f, who)
				}
				if err == nil && id != "" {
					f, err = takeAgent(f, id)
				}
				if err == nil && redacted {
					f, err = runfile.Redact(f)
				}
				if err != nil {
					return err
				}
				return cs.writeDump(f, path)
			})
		},
	}
	c.Flags().StringVar(&who, "agent", "", "only this agent and those below it, as a run of its own: "+command.AgentFlag)
	c.Flags().StringVarP(&path, "out", "O", "", "write to this file, which must not exist yet (default stdout)")
	c.Flags().BoolVar(&redacted, "redact", false, "leave out all content")
	return c
}

// dumpReadsMax is how often a run is read that ends meanwhile.
const dumpReadsMax = 3

// readDump reads a run at a consistent cut, with all blobs.
func readDump(ctx context.Context, c *client.Client, run string) (f runfile.File, err error) {
	for range dumpReadsMax {
		first, err := c.Logs(ctx, run)
		if err != nil {
			return f, err
		}
		if f, err = ReadRun(ctx, c, run); err != nil {
			return f, err
		}
		whole := len(f.Entries)
		f.Entries = runfile.Cut(first, f.Entries)
		if len(f.Entries) == whole || f.Header.State != string(client.RunFinished) {
			return withBlobs(ctx, c, run, f)
		}
	}
	return f, exit.UsageError("troupe export RUN --logs writes the logs as they are",
		"%s has ended, and its logs have no consistent cut that holds its end", run)
}

// withBlobs adds the blobs that the logs name.
func withBlobs(ctx context.Context, c *client.Client, run string, f runfile.File) (runfile.File, error) {
	missing, err := ReadBlobs(ctx, c, &f)
	if err == nil && missing > 0 {
		err = exit.UsageError("troupe export RUN --logs writes the logs without them",
			"%d blobs that the logs of %s name are not stored: a dump would not be whole", missing, run)
	}
	f.Header.Dump = true
	return f, err
}

// writeDump writes a file that appears under its name only when it is whole.
func (cs *Commands) writeDump(f runfile.File, path string) error {
	if path == "" {
		return Print(cs.Console, f)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, exit.UsageError("name a file that does not exist", "%s exists already", path))
	}
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*") // only its owner may read it
	if err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	err = runfile.Write(part, f)
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Link(part.Name(), path) // unlike a rename, it replaces no file that appeared meanwhile
	}
	err = errors.Join(err, os.Remove(part.Name()))
	if err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	cs.Console.Say(fmt.Sprintf("%s: %d entries of %s, state %s", path, len(f.Entries), f.Header.Run, f.Header.State))
	return nil
}
