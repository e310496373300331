package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/logstore/local"
	"github.com/troupe-run/troupe/mailbox"
)

// storedLogs are the entries of a run in the store while no process runs it.
type storedLogs []storedLog

type storedLog struct {
	to    mailbox.Address
	at    int64
	entry mailbox.Entry
}

// lockWait is how long the lock of a killed process may still be held.
const lockWait = 2 * time.Second

func readLogs(s testDir) (list storedLogs, err error) {
	err = s.withLogs(func(logs mailbox.Store) error {
		return logs.ReadRun(context.Background(), s.run, func(m mailbox.Message) error {
			entry, err := mailbox.Decode(m.Data)
			list = append(list, storedLog{m.To, m.At, entry})
			return err
		})
	})
	return list, err
}

// withLogs opens the store of a run that no process runs.
func (s testDir) withLogs(do func(mailbox.Store) error) error {
	e, err := embedded.Start(embedded.Config{StateDir: filepath.Join(s.dir, "state"), DontListen: true})
	for until := time.Now().Add(lockWait); errors.Is(err, statedir.ErrOwned) && time.Now().Before(until); {
		// A tool that was being forked when its parent died holds the lock until it execs.
		time.Sleep(lockWait / 50)
		e, err = embedded.Start(embedded.Config{StateDir: filepath.Join(s.dir, "state"), DontListen: true})
	}
	if err != nil {
		return err
	}
	if e.LogStore() == statedir.LogsInFiles {
		err = withFiles(e, do)
	} else {
		err = withStreams(e, do)
	}
	return errors.Join(err, e.Close())
}

func withFiles(e *embedded.Server, do func(mailbox.Store) error) error {
	logs, err := local.Open(context.Background(), local.Config{Dir: statedir.LogsDir(e.StateDir())})
	if err != nil {
		return err
	}
	return errors.Join(do(logs), logs.Close())
}

func withStreams(e *embedded.Server, do func(mailbox.Store) error) error {
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		return err
	}
	defer nc.Close()
	logs, err := jetstream.Open(context.Background(), nc, jetstream.Config{Others: true})
	if err != nil {
		return err
	}
	return errors.Join(do(logs), logs.Close())
}

func (l storedLogs) isOpened() bool { return len(l) > 0 }

// lastEntry names the newest entry.
func (l storedLogs) lastEntry() string {
	var newest storedLog
	for _, s := range l {
		if s.at >= newest.at && len(s.entry.Items) > 0 {
			newest = s
		}
	}
	if newest.to == "" {
		return "(none)"
	}
	return fmt.Sprintf("%s %s", newest.to.Agent(), newest.entry.Items[len(newest.entry.Items)-1].Kind)
}

// decodeFacts decodes an entry of an agent's log.
func (s storedLog) decodeFacts() (list []any) {
	for _, item := range s.entry.Items {
		body := func(into any) error { return mailbox.Unmarshal(item.Body, into) }
		if fact, ok, err := agent.Decode(item.Kind, body); ok && err == nil {
			list = append(list, fact)
		}
	}
	return list
}

// hasUnknown reports whether some call was started and never returned.
func (l storedLogs) hasUnknown() bool {
	open := map[string]bool{}
	for _, s := range l {
		for _, fact := range s.decodeFacts() {
			switch f := fact.(type) {
			case agent.Started:
				open[string(s.to)+f.Call] = true
			case agent.Returned:
				delete(open, string(s.to)+f.Call)
			}
		}
	}
	return len(open) > 0
}
