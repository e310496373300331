package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/internal/workspace"
	"github.com/troupe-run/troupe/mailbox"
)

// withFork prepares the directory of a fork and begins the run. It removes the copy if no
// node can have accepted the run.
func (cs *Commands) withFork(flags *request.Flags, begin func() error) error {
	err := cs.prepareFork(flags)
	if err == nil {
		err = begin()
	}
	if err != nil && flags.Copy != "" {
		err = errors.Join(err, os.RemoveAll(flags.Copy))
	}
	return err
}

// prepareFork finds the run whose tree is forked, and copies its directory. A signal meanwhile is an error.
func (cs *Commands) prepareFork(flags *request.Flags) error {
	origin, point, _ := strings.Cut(flags.Request.Fork, "@")
	who, at, ofTree := strings.Cut(point, ":")
	if !ofTree {
		return nil
	}
	sig := interrupt.Catch()
	defer sig.Stop()
	err := cs.Sessions.VisitRun(session.ToInspect, origin, func(ctx context.Context, s *session.Session, run string) error {
		who, err := s.FindAgent(ctx, run, who)
		if err != nil {
			return err
		}
		flags.Request.Fork = run + "@" + who + ":" + at
		entries, cut, err := readCut(ctx, s, run, who, at)
		if err != nil {
			return err
		}
		dir := workspaceOf(cut)
		if dir == "" {
			return nil
		}
		isNeeded, err := cs.chooseDir(ctx, s, flags, dir)
		if err != nil || !isNeeded {
			return err
		}
		return cs.copyForFork(ctx, sig.Starting, s, flags, forkedDir{run: run, dir: dir, entries: entries, cut: cut})
	})
	select {
	case <-sig.First:
		return &exit.Failure{Code: sig.ExitCode(), Err: errors.New("interrupted before the fork began: there is no new run, and no copy of the directory")}
	default:
		return err
	}
}

// chooseDir chooses the directory of a fork, and reports whether it must be made.
func (cs *Commands) chooseDir(ctx context.Context, s *session.Session, flags *request.Flags, dir string) (bool, error) {
	named, id := flags.Request.Dir != "", flags.Request.RunID
	if !named {
		flags.Request.Dir = filepath.Clean(dir) + "-fork-" + id
	}
	_, err := s.Get(ctx, id)
	if known := (*client.Error)(nil); err != nil && !(errors.As(err, &known) && known.Code == client.CodeNotFound) {
		return false, err
	}
	if err == nil {
		cs.sayFork("run %s exists already: no directory is copied", id)
		entries, err := s.Logs(ctx, id)
		flags.Request.Dir = cmp.Or(workspaceOf(entries), flags.Request.Dir)
		return false, err
	}
	if _, err := os.Lstat(flags.Request.Dir); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if !named {
		return false, exit.UsageError("name another directory with --dir, or this one if the fork shall write there",
			"%s exists, and run %s does not", flags.Request.Dir, id)
	}
	cs.warnFork("%s exists and is used as it is: the fork writes there", flags.Request.Dir)
	return false, nil
}

// forkedDir is the directory of a run that is forked, with the entries of its logs before the
// copy, and those of the cut.
type forkedDir struct {
	run, dir     string
	entries, cut []mailbox.Message
}

// copyForFork copies a directory, and takes back what the logs record after the point: also during the copy.
func (cs *Commands) copyForFork(ctx, copying context.Context, s *session.Session, flags *request.Flags, from forkedDir) error {
	c, err := copyTree(copying, from.dir, flags.Request.Dir, flags.Request.RunID, workspace.TrustedDirs(cs.Sessions.StateDir))
	if err != nil {
		return err
	}
	cs.sayFork("%s is a copy of %s", flags.Request.Dir, from.dir)
	for _, note := range c.notes {
		cs.sayFork("%s", note)
	}
	for _, warning := range c.warnings {
		cs.warnFork("%s", warning)
	}
	now, err := s.Logs(ctx, from.run)
	if err == nil {
		err = cs.takeBack(ctx, s, c.partial, from, now)
	}
	if err != nil {
		return c.drop(err)
	}
	for _, call := range begunCalls(now) {
		cs.warnFork("what %s has written so far is in the copy: it had begun and had no result when the copy was made", call)
	}
	if err := c.finish(); err != nil {
		return err
	}
	flags.Copy = flags.Request.Dir
	return nil
}

// sendRequest sends the request of a run. A run that exists already has a directory: the copy for it goes.
func (cs *Commands) sendRequest(s *session.Session, flags *request.Flags) (client.RunAccepted, error) {
	dir := flags.Copy
	accepted, err := flags.Send(s, cs.Sessions.StateDir)
	if err == nil || dir != "" && flags.Copy == "" {
		for _, note := range cs.forkNotes {
			cs.Console.Say(note)
		}
		cs.forkNotes = nil
	}
	if err == nil && !accepted.UserSettings && !accepted.Existed {
		request.NoteClaudeSettings(cs.Console)
	}
	switch {
	case dir == "":
	case err != nil && flags.Copy == "":
		cs.Console.Say(term.CleanLine(dir + " is kept: no answer came, so the fork may have begun there"))
	case err == nil && accepted.Existed:
		flags.Copy = ""
		// The answer may be to the second attempt of a request that was accepted before, and then the run is in the copy.
		entries, failed := s.Logs(s.Context, flags.Request.RunID)
		if used := workspaceOf(entries); failed != nil || used == "" || isSameDir(used, dir) {
			break
		}
		if !cs.Console.Quiet {
			cs.Console.Say(term.CleanLine(fmt.Sprintf("run %s exists already: %s is removed", flags.Request.RunID, dir)))
		}
		err = os.RemoveAll(dir)
	}
	return accepted, err
}

func isSameDir(a, b string) bool {
	one, err := os.Stat(a)
	other, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(one, other)
}

// sayFork says what became of the directory of a fork, once a node has accepted the run: the copy for a refused one goes.
func (cs *Commands) sayFork(format string, args ...any) {
	if !cs.Console.Quiet {
		cs.warnFork(format, args...)
	}
}

// warnFork says where the directory of a fork is not as it was at the point, or not its own: with -q, too. See sayFork.
func (cs *Commands) warnFork(format string, args ...any) {
	cs.forkNotes = append(cs.forkNotes, term.CleanLine(fmt.Sprintf(format, args...)))
}

// readCut reads the logs of a run, all of them and those of the cut at a point.
func readCut(ctx context.Context, s *session.Session, run, who, at string) (entries, cut []mailbox.Message, err error) {
	first, err := s.Logs(ctx, run)
	if err == nil {
		entries, err = s.Logs(ctx, run)
	}
	if err != nil {
		return nil, nil, err
	}
	if cut, err = runfile.CutFork(runfile.Cut(first, entries), who, at); err != nil {
		return nil, nil, exit.UsageError("name RUN@AGENT:TURN, or RUN@AGENT:CALL for a call or a question; `troupe tree "+run+"` and `troupe transcript "+run+"` show them",
			"--fork %s@%s:%s: %v", run, who, at, err)
	}
	return entries, cut, nil
}

// takeBack takes back, in the copy of a directory, what the original changed after the point. A file may have been
// copied before its last change: then it is as the logs before the copy say.
func (cs *Commands) takeBack(ctx context.Context, s *session.Session, dir string, from forkedDir, now []mailbox.Message) error {
	later, before := changesAfter(now, from.cut), changesAfter(from.entries, from.cut).Nets("")
	root, _, err := workdir.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	defer func() { _ = root.Close() }()
	undo := func(n filechange.Net) ([]string, error) {
		return filechange.Undo(root, []filechange.Net{n}, func(ref string) ([]byte, error) { return s.Blob(ctx, from.run, ref) }, false)
	}
	for _, n := range later.Nets("") {
		paths, err := undo(n)
		if i := slices.IndexFunc(before, func(b filechange.Net) bool { return b.Path == n.Path }); i >= 0 && errors.Is(err, filechange.ErrRefused) {
			if earlier, failed := undo(before[i]); failed == nil {
				paths, err = earlier, nil
			}
		}
		if refused := (filechange.Refusals)(nil); errors.As(err, &refused) {
			cs.warnFork("as it is now, not as at the point: %s", refused.Error())
			continue
		}
		if err != nil {
			return fmt.Errorf("fork: %w", err)
		}
		for _, path := range paths {
			cs.sayFork("as at the point: %s", path)
		}
	}
	for _, what := range later.Lost {
		cs.warnFork("changes after the point that are not recorded are in the copy: %s", what)
	}
	return nil
}

// workspaceOf returns the directory of a run; "": it has none.
func workspaceOf(entries []mailbox.Message) (dir string) {
	runfile.EachFact(entries, func(_ mailbox.Message, fact agent.Fact, _ bool) {
		if f, ok := fact.(agent.Submitted); ok && f.Task.ID == spec.Root && dir == "" {
			dir = f.Task.Workspace
		}
	})
	return dir
}

// changesAfter returns what tools changed in files after a cut.
func changesAfter(entries, cut []mailbox.Message) (h filechange.History) {
	through := map[mailbox.Address]uint64{}
	for _, m := range cut {
		through[m.To] = max(through[m.To], m.Place)
	}
	later := slices.DeleteFunc(slices.Clone(entries), func(m mailbox.Message) bool { return m.Place <= through[m.To] })
	runfile.EachFact(later, func(m mailbox.Message, fact agent.Fact, _ bool) {
		if f, ok := fact.(agent.Returned); ok {
			h.Add(m.To.Agent(), f.Call, m.Stamp(), f.Files, f.FilesLost)
		}
	})
	return h
}

// begunCalls returns the calls that had begun and have no result.
func begunCalls(entries []mailbox.Message) (calls []string) {
	runfile.EachFact(entries, func(m mailbox.Message, fact agent.Fact, _ bool) {
		name := func(call string) string { return fmt.Sprintf("call %s of %s", call, m.To.Agent()) }
		switch f := fact.(type) {
		case agent.Started:
			if !slices.Contains(calls, name(f.Call)) {
				calls = append(calls, name(f.Call))
			}
		case agent.Returned:
			calls = slices.DeleteFunc(calls, func(c string) bool { return c == name(f.Call) })
		}
	})
	return calls
}
