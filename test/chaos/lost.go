package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/mailbox"
)

// damageStore damages a file of the store, or one log of the run.
func damageStore(s testDir, entries storedLogs, random *rand.Rand) (what string, err error) {
	if !entries.isOpened() || random.IntN(2) == 0 {
		return damageFile(filepath.Join(s.dir, "state"), random)
	}
	var at []mailbox.Address
	for _, e := range entries {
		at = append(at, e.to)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	err = s.withLogs(func(logs mailbox.Store) error {
		what, err = loseEntries(logs, at[random.IntN(len(at))], random)
		return err
	})
	return what, err
}

// loseEntries takes the tail of a log, its head, or all of it.
func loseEntries(logs mailbox.Store, at mailbox.Address, random *rand.Rand) (what string, err error) {
	ctx := context.Background()
	var old []mailbox.Message
	err = logs.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
		m.Data = slices.Clone(m.Data)
		old = append(old, m)
		return nil
	})
	if err != nil {
		return "", err
	}
	lost := 1 + random.IntN(max(1, len(old)-1))
	switch random.IntN(3) {
	case 0:
		return fmt.Sprintf("log of %s gone, %d entries", at.Agent(), len(old)), logs.Purge(ctx, at, 0)
	case 1:
		if lost == len(old) {
			return fmt.Sprintf("log of %s without its head, all %d", at.Agent(), lost), logs.Purge(ctx, at, 0)
		}
		return fmt.Sprintf("log of %s without its head, %d of %d", at.Agent(), lost, len(old)), logs.Purge(ctx, at, old[lost].Place)
	}
	// The store removes only the oldest entries, so the remaining ones are appended again.
	what = fmt.Sprintf("log of %s without its tail, %d of %d", at.Agent(), lost, len(old))
	err = logs.Purge(ctx, at, 0)
	for _, m := range old[:len(old)-lost] {
		if err == nil {
			_, err = mailbox.Put(ctx, logs, at, m.Data)
		}
	}
	return what, err
}

// runVerb executes a command of the CLI, and returns its exit code and what it printed; the
// end of ctx kills it.
func (s testDir) runVerb(ctx context.Context, verb string, args ...string) (code int, out string) {
	cmd := s.commandOf(verb, args...)
	stop := context.AfterFunc(ctx, func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		}
	})
	defer stop()
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(text))
}

// removeTimeout is how long one cancel or delete of a damaged run may take.
const removeTimeout = time.Minute

// removeRun ends a damaged run that waits for the user, and deletes it: both must work whatever
// is damaged. A run that is missing in the store cannot be deleted.
func (s testDir) removeRun(outcome string) (problem string) {
	type verb struct {
		args []string
		code int // of a success
	}
	verbs := []verb{{[]string{"delete", "--yes", s.run}, 0}}
	if outcome != "completed" && outcome != "log_damaged" {
		verbs = slices.Insert(verbs, 0, verb{[]string{"cancel", "--now", s.run}, 0})
	}
	for _, v := range verbs {
		ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
		code, out := s.runVerb(ctx, v.args[0], v.args[1:]...)
		hung := ctx.Err() != nil
		cancel()
		switch {
		case hung:
			return "; " + v.args[0] + " hung"
		case code != v.code && !strings.Contains(out, "there is no run"):
			return fmt.Sprintf("; %s exits %d: %s", v.args[0], code, out)
		}
	}
	return ""
}
