package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool/kept"
)

// keepTimeout ends an attempt to keep a whole result. The call has ended by
// then: what its tool did must not be lost for the want of a blob.
const keepTimeout = 15 * time.Second

// keeper keeps the whole of results that are clipped. It is a value that the
// goroutine of a call takes along.
type keeper struct {
	ctx    context.Context // of the shell: an aborted call has a result, too
	blobs  mailbox.Blobs
	run    string
	reader bool // the agent can read a kept result
}

func (s *shell) keeper(t agent.Task) keeper {
	reader := slices.ContainsFunc(t.Tools, func(spec model.ToolSpec) bool { return spec.Name == kept.Name })
	return keeper{s.ctx, s.cfg.Blobs, t.Run, reader}
}

// keep stores the whole result of a call whose text is a part of it, before
// anything names it (PROTOCOL P15), and says in the text where it is. Where it
// cannot be kept the text says so, and nothing else is lost.
func (k keeper) keep(f agent.Returned, whole string) agent.Returned {
	if whole == "" || k.blobs == nil {
		return f
	}
	f.Size = int64(len(whole))
	ctx, cancel := context.WithTimeout(k.ctx, keepTimeout)
	defer cancel()
	ref, err := k.blobs.Put(ctx, k.run, []byte(whole))
	line := ""
	switch {
	case err != nil:
		line = fmt.Sprintf("[not kept whole: %s]", lost(err))
	case k.reader:
		line = fmt.Sprintf("[kept whole, %d bytes: %s reads any part of it, ref %s]", f.Size, kept.Name, ref)
	default:
		line = fmt.Sprintf("[kept whole, %d bytes: ref %s]", f.Size, ref)
	}
	f.Ref = ref
	f.Text = strings.TrimRight(f.Text, "\n") + "\n" + line
	return f
}

// lost says to a model why a whole result was not kept: what it can do nothing
// about, it need not read.
func lost(err error) string {
	switch {
	case errors.Is(err, mailbox.ErrBlobRoom):
		return "this run keeps too much already"
	case errors.Is(err, mailbox.ErrFull):
		return "the store is full"
	case errors.Is(err, mailbox.ErrTooLarge):
		return "it is too large"
	}
	return "the store did not take it"
}
