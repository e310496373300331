package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/workdir"
	"github.com/troupe-run/troupe/mailbox"
)

// prepareFork finds the run whose tree is forked, and copies its directory.
func (cs *Commands) prepareFork(flags *request.Flags) error {
	origin, point, _ := strings.Cut(flags.Request.Fork, "@")
	who, at, ofTree := strings.Cut(point, ":")
	if !ofTree {
		return nil
	}
	return cs.Sessions.VisitRun(session.ToInspect, origin, func(ctx context.Context, s *session.Session, run string) error {
		flags.Request.Fork = run + "@" + point
		entries, cut, err := readCut(ctx, s, run, who, at)
		if err != nil {
			return err
		}
		dir := workspaceOf(cut)
		if dir == "" {
			return nil
		}
		if flags.Request.Dir == "" {
			flags.Request.Dir = filepath.Clean(dir) + "-fork-" + flags.Request.RunID[max(0, len(flags.Request.RunID)-6):]
		}
		if _, err := os.Lstat(flags.Request.Dir); err == nil {
			cs.Console.Say(fmt.Sprintf("%s exists and is used as it is: the fork writes there", term.CleanLine(flags.Request.Dir)))
			return nil
		}
		left, err := copyTree(dir, flags.Request.Dir)
		if err != nil {
			return err
		}
		flags.Copy = flags.Request.Dir
		cs.sayFork("%s is a copy of %s", flags.Copy, dir)
		for _, what := range left {
			cs.sayFork("not copied: %s", what)
		}
		return cs.takeBack(ctx, s, flags.Copy, run, changesAfter(entries, cut))
	})
}

// sayFork says what became of the directory of a fork.
func (cs *Commands) sayFork(format string, args ...any) {
	if !cs.Console.Quiet {
		cs.Console.Say(term.CleanLine(fmt.Sprintf(format, args...)))
	}
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

// takeBack takes back, in the copy of a directory, what the original changed after the point.
func (cs *Commands) takeBack(ctx context.Context, s *session.Session, dir, run string, later filechange.History) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	root, _, err := workdir.OpenRoot(real)
	if err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, n := range later.Nets("") {
		paths, err := filechange.Undo(root, []filechange.Net{n}, func(ref string) ([]byte, error) { return s.Blob(ctx, run, ref) }, false)
		if refused := (filechange.Refusals)(nil); errors.As(err, &refused) {
			cs.sayFork("as it is now, not as at the point: %s", refused.Error())
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
		cs.sayFork("changes after the point that are not recorded are in the copy: %s", what)
	}
	return nil
}

// workspaceOf returns the directory of a run; "": it has none.
func workspaceOf(entries []mailbox.Message) (dir string) {
	forEachOfAgents(entries, func(_ mailbox.Message, fact agent.Fact) {
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
	forEachOfAgents(later, func(m mailbox.Message, fact agent.Fact) {
		if f, ok := fact.(agent.Returned); ok {
			h.Add(m.To.Agent(), f.Call, m.Stamp(), f.Files, f.FilesLost)
		}
	})
	return h
}

// forEachOfAgents decodes the facts in the logs of agents.
func forEachOfAgents(entries []mailbox.Message, do func(mailbox.Message, agent.Fact)) {
	for _, m := range entries {
		e, err := mailbox.Decode(m.Data)
		if err != nil || m.To.Agent() == mailbox.Super {
			continue
		}
		for _, item := range e.Items {
			fact, ok, err := agent.Decode(item.Kind, func(into any) error { return mailbox.Unmarshal(item.Body, into) })
			if ok && err == nil {
				do(m, fact)
			}
		}
	}
}
