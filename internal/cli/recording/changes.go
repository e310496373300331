package recording

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/approval"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/mailbox"
)

// Diff makes the command diff.
func (cs *Commands) Diff() *cobra.Command {
	var who string
	c := &cobra.Command{
		Use: "diff RUN|FILE", Args: exactlyOne,
		Short: "Show what a run changed in the files of its directory",
		Long: `Show what the tools of a run changed in the files of its directory, as a unified diff: from
the content before the first change to the content after the last one. It reads the logs
of the run and the contents that were kept, and not the directory. docs/undo.md says
what is recorded.`,
		Example:     "  troupe diff last\n  troupe diff 01k9z3 --agent root-1-0\n  troupe diff last -o json | jq .files",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.withChanges(args[0], who, cs.printChanges)
		},
	}
	c.Flags().StringVar(&who, "agent", "", "only what this agent changed: "+command.AgentFlag)
	return c
}

// Undo makes the command undo.
func (cs *Commands) Undo() *cobra.Command {
	var who string
	var flags undoFlags
	c := &cobra.Command{
		Use: "undo RUN|FILE", Args: exactlyOne,
		Short: "Take back what a run changed in the files of its directory",
		Long: `Take back what the tools of a finished run changed in the files of its directory: each
file gets the content and the mode that it had before. All of them, or none: the command
refuses if a file is not as the run left it, because a person has edited it since, if its
content before was not kept, or if some changes of the run were not recorded, such as
those of a call whose process was killed (unless --partial is given). --skip leaves such
a file as it is, and the rest is taken back. The
command follows no link, and changes no file of git.

Run it in the directory of the run, or name that with --dir; a copy of it needs --copy,
too. On a terminal the
command asks for confirmation unless --yes is given; elsewhere --yes is required.`,
		Example:     "  troupe undo last --dry-run\n  troupe undo 01k9z3 --agent root-1-0 --yes\n  troupe undo last --skip notes.md --skip 'docs/**'",
		Annotations: map[string]string{command.Formats: command.DataFormats},
		RunE: func(_ *cobra.Command, args []string) error {
			return cs.withChanges(args[0], who, func(c changes) error { return cs.undo(c, flags) })
		},
	}
	c.Flags().StringVar(&who, "agent", "", "only what this agent changed: "+command.AgentFlag)
	c.Flags().StringVar(&flags.dir, "dir", "",
		"directory in which the files are taken back (default: the current one, which must be that of the run)")
	c.Flags().BoolVar(&flags.copy, "copy", false, "the directory of --dir is a copy of the one in which the run worked")
	c.Flags().BoolVar(&flags.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&flags.dry, "dry-run", false, "only list the files")
	c.Flags().BoolVar(&flags.partial, "partial", false, "take back what is recorded, although other changes are not")
	c.Flags().StringArrayVar(&flags.skip, "skip", nil,
		"leave this file as it is and take back the rest: a path, or a pattern such as 'docs/**'; may be repeated")
	return c
}

// undoFlags are the flags of undo.
type undoFlags struct {
	dir               string
	yes, dry, partial bool
	copy              bool     // dir is a copy of the directory of the run
	skip              []string // patterns of paths
}

// changes are what a run changed, and where its contents are.
type changes struct {
	file  runfile.File
	dir   string
	nets  []filechange.Net
	lost  []string
	blob  func(ref string) ([]byte, error)
	agent string
}

// readHistory reads from the logs of a run what its tools changed in files.
func readHistory(entries []mailbox.Message) filechange.History {
	var h filechange.History
	runfile.EachFact(entries, func(m mailbox.Message, fact agent.Fact, own bool) {
		switch f := fact.(type) {
		case agent.Submitted:
			if f.Task.ID == spec.Root && h.Dir == "" {
				h.Dir = f.Task.Workspace
			}
		case agent.Returned:
			if own {
				h.Add(m.To.Agent(), f.Call, m.Stamp(), f.Files, f.FilesLost)
			}
		}
	})
	return h
}

// withChanges reads the changes of a run, or of one of its agents.
func (cs *Commands) withChanges(text, who string, do func(changes) error) error {
	read := func(f runfile.File, blob func(string) ([]byte, error)) error {
		if err := refuseRedacted(f); err != nil {
			return err
		}
		who, err := agentIn(f, who)
		if err != nil {
			return err
		}
		h := readHistory(f.Entries)
		return do(changes{file: f, dir: h.Dir, nets: h.Nets(who), lost: append(h.Lost, lostCalls(f.Entries)...), blob: blob, agent: who})
	}
	if isPath(text) {
		f, err := ReadFile(text)
		if err != nil {
			return err
		}
		return read(f, func(ref string) ([]byte, error) {
			if data, ok := f.Blobs[ref]; ok {
				return data, nil
			}
			return nil, errors.New("the run file does not have it; \"troupe export RUN --logs --blobs\" writes one that has")
		})
	}
	return cs.Sessions.VisitRun(session.ToInspect, text, func(ctx context.Context, s *session.Session, run string) error {
		f, err := ReadRun(ctx, s.Client, run)
		if err != nil {
			return err
		}
		return read(f, func(ref string) ([]byte, error) { return s.Blob(ctx, run, ref) })
	})
}

// fileReport is one file of the output.
type fileReport struct {
	filechange.Net
	Diff string `json:"diff,omitempty"`
	Note string `json:"note,omitempty"` // why there is no difference
}

// changesReport is what diff prints.
type changesReport struct {
	Run   string       `json:"run_id"`
	Dir   string       `json:"dir"`
	Files []fileReport `json:"files"`
	Lost  []string     `json:"not_recorded,omitempty"`
}

func (cs *Commands) printChanges(c changes) error {
	r := changesReport{Run: c.file.Header.Run, Dir: c.dir, Files: []fileReport{}, Lost: c.lost}
	for _, n := range c.nets {
		if n.SameAsAtFirst {
			continue
		}
		r.Files = append(r.Files, c.report(n))
	}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(r)
	}
	var lines []string
	for _, f := range r.Files {
		if f.Diff != "" {
			lines = append(lines, strings.Split(strings.TrimSuffix(f.Diff, "\n"), "\n")...)
		}
		if f.Note != "" {
			lines = append(lines, fmt.Sprintf("%s: %s", term.CleanLine(f.Path), f.Note))
		}
	}
	for _, text := range r.Lost {
		lines = append(lines, "not all changes are recorded: "+term.CleanLine(text))
	}
	if len(lines) == 0 {
		lines = append(lines, "no changed file is recorded")
	}
	return cs.Console.PrintLines(slices.Clip(lines))
}

// report describes the change of one file.
func (c changes) report(n filechange.Net) fileReport {
	r := fileReport{Net: n}
	text := func(s spec.FileState) (*string, string) {
		if !s.Exists() {
			return nil, ""
		}
		empty := ""
		if s.Size == 0 {
			return &empty, ""
		}
		if s.Ref == "" {
			return nil, fmt.Sprintf("%d bytes, of which the content was not kept", s.Size)
		}
		data, err := c.blob(s.Ref)
		switch {
		case err != nil:
			return nil, err.Error()
		case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
			return nil, fmt.Sprintf("no text, %d bytes", s.Size)
		}
		whole := string(data)
		return &whole, ""
	}
	before, why := text(n.Before)
	after, whyAfter := text(n.After)
	if why != "" || whyAfter != "" {
		r.Note = fmt.Sprintf("%s; before: %s; after: %s", describeNet(n), describeContent(n.Before, why), describeContent(n.After, whyAfter))
		return r
	}
	r.Diff = approval.Difference(n.Path, before, after)
	if r.Diff == "" || n.Before.Exists() && n.After.Exists() && n.Before.Mode != n.After.Mode {
		r.Note = describeNet(n)
	}
	return r
}

// describeContent describes the content of a file whose difference is not shown, with the reason.
func describeContent(s spec.FileState, why string) string {
	switch {
	case !s.Exists():
		return "no file"
	case why == "":
		return fmt.Sprintf("a text, %d bytes", s.Size)
	}
	return why
}

// describeNet says in a few words what became of a file.
func describeNet(n filechange.Net) string {
	mode := func(s spec.FileState) fs.FileMode { return fs.FileMode(s.Mode).Perm() }
	switch {
	case !n.Before.Exists() && !n.After.Exists():
		return "made and deleted"
	case !n.Before.Exists():
		return "new"
	case !n.After.Exists():
		return "deleted"
	case mode(n.Before) != mode(n.After):
		return fmt.Sprintf("changed, mode %s to %s", mode(n.Before), mode(n.After))
	}
	return "changed"
}

// undoReport is what undo prints.
type undoReport struct {
	Run   string   `json:"run_id"`
	Dir   string   `json:"dir"`
	Files []string `json:"files"`
	Dry   bool     `json:"dry_run,omitempty"`
	Lost  []string `json:"not_recorded,omitempty"`
	// Skipped are the files that --skip left as they are.
	Skipped []string `json:"skipped,omitempty"`
}

func (cs *Commands) undo(c changes, flags undoFlags) error {
	run := c.file.Header.Run
	if c.file.Header.State != string(client.RunFinished) {
		return exit.UsageError("troupe cancel "+run+" ends it", "%s has not ended: its agents may go on writing", run)
	}
	root, at, err := openUndoRoot(c.dir, flags.dir, run, flags.copy)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	all := len(c.nets)
	skipped, err := c.skip(flags.skip)
	if err != nil {
		return err
	}
	paths, err := filechange.Undo(root, c.nets, c.blob, true)
	if refused := (filechange.Refusals)(nil); errors.As(err, &refused) {
		return exit.UsageError("nothing was changed. "+skipHint(refused)+"; troupe diff "+run+" shows what the run did",
			"%d of %d files cannot be taken back: %s", len(refused), all, refused.Error())
	}
	if err != nil {
		return err
	}
	if len(c.lost) > 0 && !flags.dry && !flags.partial {
		return exit.UsageError("nothing was changed. --partial takes back the rest: --dry-run lists it",
			"not all that %s changed is recorded, and what is not would stay: %s", run, term.CleanLine(c.lost[0]))
	}
	if !flags.dry && len(paths) > 0 {
		what := fmt.Sprintf("take back %s in %s", countFiles(len(paths)), at)
		if len(c.lost) > 0 {
			what += ", not all that the run changed"
		}
		if err := cs.Console.Confirm(flags.yes, term.CleanLine(what+" ("+strings.Join(paths, ", ")+")"), ".", "nothing was changed"); err != nil {
			return err
		}
		if paths, err = filechange.Undo(root, c.nets, c.blob, false); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
	}
	r := undoReport{Run: run, Dir: at, Files: append([]string{}, paths...), Dry: flags.dry, Lost: c.lost, Skipped: skipped}
	if cs.Console.Output != "table" {
		return cs.Console.PrintData(r)
	}
	return cs.printUndo(r)
}

func (cs *Commands) printUndo(r undoReport) error {
	var lines []string
	for _, path := range r.Files {
		lines = append(lines, term.CleanLine(path))
	}
	end := countFiles(len(r.Files)) + " taken back"
	if r.Dry {
		end = countFiles(len(r.Files)) + " would be taken back"
	}
	lines = append(lines, end)
	for _, path := range r.Skipped {
		lines = append(lines, "left as it is: "+term.CleanLine(path))
	}
	for _, text := range r.Lost {
		lines = append(lines, "not all changes are recorded, and what is not stays: "+term.CleanLine(text))
	}
	return cs.Console.PrintLines(lines)
}

func countFiles(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// resolvedPath returns a path without links, or the path itself if it does not exist here.
func resolvedPath(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return filepath.Clean(path)
}

// openUndoRoot opens the directory in which files are taken back. The logs name one, and are believed only if the
// user is in it, or names it: files of another directory that happen to be equal are not the run's.
func openUndoRoot(recorded, named, run string, isCopy bool) (root *os.Root, dir string, err error) {
	dir, err = filepath.Abs(named)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, "", exit.UsageError("name a directory that exists", "--dir: %v", err)
	}
	if named == "" && dir != filepath.Clean(recorded) {
		return nil, "", exit.UsageError("run it there, or name a copy of it with --dir and --copy",
			"%s worked in %q, and this is %s", run, recorded, dir)
	}
	if recorded != "" && !isCopy && dir != resolvedPath(recorded) {
		return nil, "", exit.UsageError("nothing was changed. Leave --dir out in the directory of the run; --copy confirms that --dir is a copy of it",
			"%s worked in %q, and --dir is %s", run, recorded, dir)
	}
	root, _, err = workdir.OpenRoot(dir)
	return root, dir, err
}
