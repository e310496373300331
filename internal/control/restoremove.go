package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/supervisor"
)

// moveRestored changes the logs of a file if its run goes on in another directory, or in the node pool of another machine: the
// request names the directory. The logs are judged before, because a changed log says nothing about who changed it, and
// afterwards with all others. What is done with the same file is always the same, so that a restore can be repeated.
func (c *opener) moveRestored(f runfile.File, named client.RunRequest, now time.Time) (runfile.File, error) {
	o, err := firstOpened(f)
	if err != nil || named.Dir == "" || o.Workspace == "" || c.cfg.PlaceRestored == nil {
		return f, err
	}
	dir, pool, err := c.cfg.PlaceRestored(named)
	if err != nil || dir == o.Workspace && pool == o.NodePool {
		return f, err
	}
	was := o.Workspace
	if dir != was {
		if err := checkRulesHold(o, dir, "restore it into a directory of the same path"); err != nil {
			return f, err
		}
	}
	original, err := replayWhole(f.Entries, f.Header.Run)
	if err != nil {
		return f, err
	}
	o.NodePool = pool
	logs := forkedLogs{from: f.Header.Run, to: f.Header.Run, pools: poolsOf(original.Super, o), open: func(o *supervisor.Opened) {
		o.NodePool = pool
		moveOpened(o, dir)
	}}
	moved := f
	if moved.Entries, err = logs.copyLogs(f.Entries); err != nil {
		return f, badFile(dumpHint, "the logs cannot be moved to %s: %v", dir, err)
	}
	if dir == was {
		return moved, nil
	}
	note := fmt.Sprintf("This run was moved. Your tools now work in the directory %s, a copy of %s, and nowhere else.", dir, was)
	for id, s := range original.Agents {
		if s.Phase == "" || s.Phase == agent.Done || s.Task.Workspace == "" {
			continue
		}
		at := logs.address(mailbox.At(f.Header.Run, string(id)))
		m, err := command(at, fmt.Sprintf("moved-%d", countEntries(moved.Entries, at)), agent.Forked{Note: note}, now.UnixMilli())
		if err != nil {
			return f, fmt.Errorf("control: restore: %w", err)
		}
		moved.Entries = append(moved.Entries, m)
	}
	return moved, nil
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
