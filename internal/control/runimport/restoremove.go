package runimport

import (
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// runMove is how a restored run differs from the one in its file.
type runMove struct {
	dir, pool string
	leaves    bool // its conversation
}

// chooseMove decides where a run from a file goes on: in the directory and on the machine that its request names. A
// run of a conversation leaves it, because other runs of the conversation, and its lane, are not in the file.
func (c *runFileCheck) chooseMove(o supervisor.Opened, named client.RunRequest) (m runMove, err error) {
	m = runMove{o.Workspace, o.NodePool, o.InLane && o.Conversation != ""}
	if named.Dir != "" && o.Workspace != "" && c.cfg.PlaceRestored != nil {
		m.dir, m.pool, err = c.cfg.PlaceRestored(named)
	}
	if err == nil && m.dir != o.Workspace {
		err = checkRulesHold(o, m.dir, "restore it into a directory of the same path")
	}
	return m, err
}

// moveRestored changes the logs of a file if its run goes on elsewhere, or without its conversation. The logs are
// judged before, because a changed log says nothing about who changed it, and afterwards with all others. What is
// done with the same file is always the same, so that a restore can be repeated.
func (c *runFileCheck) moveRestored(f runfile.File, named client.RunRequest, now time.Time) (runfile.File, error) {
	o, err := firstOpened(f)
	if err != nil {
		return f, err
	}
	to, err := c.chooseMove(o, named)
	moves := to.dir != o.Workspace || to.pool != o.NodePool
	if err != nil || !moves && !to.leaves {
		return f, err
	}
	original, err := replayWhole(f.Entries, f.Header.Run)
	if err != nil {
		return f, err
	}
	switch phase := original.Super.Phase; {
	case to.leaves && phase == supervisor.Queued:
		return f, badFile("send its prompt again",
			"%s waits for its turn in the conversation %.80s and has not begun", o.Run, o.Conversation)
	case phase == supervisor.Over && !moves: // it is in the way of no other run
		return f, nil
	case phase == supervisor.Over:
		to.leaves = false
	}
	was := o.Workspace
	o.NodePool = to.pool
	logs := forkedLogs{from: f.Header.Run, to: f.Header.Run, pools: poolsOf(original.Super, o), open: func(o *supervisor.Opened) {
		o.NodePool = to.pool
		moveOpened(o, to.dir)
		if to.leaves {
			o.Conversation = ""
		}
	}}
	moved := f
	if moved.Entries, err = logs.copyLogs(f.Entries); err != nil {
		return f, badFile(dumpHint, "the logs cannot be changed for %s: %v", to.dir, err)
	}
	if to.dir != was {
		note := fmt.Sprintf("This run was moved. Your tools now work in the directory %s, a copy of %s, and nowhere else.", to.dir, was)
		err = addNotes(&moved, original.Agents, logs, note, now)
	}
	return moved, err
}

// addNotes tells the agents of a moved run of their new directory.
func addNotes(f *runfile.File, agents map[spec.ID]agent.State, logs forkedLogs, note string, now time.Time) error {
	for id, s := range agents {
		if s.Phase == "" || s.Phase == agent.Done || s.Task.Workspace == "" {
			continue
		}
		at := logs.address(mailbox.At(f.Header.Run, string(id)))
		m, err := command(at, fmt.Sprintf("moved-%d", countEntries(f.Entries, at)), agent.Forked{Note: note}, now.UnixMilli())
		if err != nil {
			return fmt.Errorf("control: restore: %w", err)
		}
		f.Entries = append(f.Entries, m)
	}
	return nil
}

// poolsOf returns in which node pools the agents of a run live if it was opened otherwise.
func poolsOf(s supervisor.State, o supervisor.Opened) map[mailbox.Address]string {
	pools := map[mailbox.Address]string{}
	s.Members(func(m supervisor.Member) {
		var def supervisor.Definition
		if i := slices.IndexFunc(o.Definitions, func(d supervisor.Definition) bool { return d.Name == m.Name }); i >= 0 {
			def = o.Definitions[i]
		}
		pools[mailbox.At(o.Run, string(m.ID))] = o.PoolFor(def)
	})
	return pools
}

func countEntries(entries []mailbox.Message, at mailbox.Address) (n int) {
	for _, m := range entries {
		if m.To == at {
			n++
		}
	}
	return n
}
