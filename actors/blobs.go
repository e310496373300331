package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/filechange"
	"github.com/troupe-run/troupe/internal/toolset/readresult"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// keepTimeout ends an attempt to store a whole result. The call has ended by then, and its
// effects must not be lost because a blob cannot be stored.
const keepTimeout = 15 * time.Second

// resultStore stores whole results when the log holds only a clipped part. It is a value that the
// goroutine of a call carries.
type resultStore struct {
	ctx    context.Context // of the shell: an aborted call has a result, too
	blobs  mailbox.Blobs
	run    string
	reader bool // the agent can read a stored result
}

func (s *shell) resultStoreFor(t spec.Task) resultStore {
	reader := slices.ContainsFunc(t.Tools, func(toolSpec model.ToolSpec) bool { return toolSpec.Name == readresult.Name })
	return resultStore{s.ctx, s.cfg.Blobs, t.Run, reader}
}

// storeWhole stores the whole result of a call whose text is a part of it, before an entry refers
// to it (PROTOCOL P15), and appends the reference to the text. If the store fails, the text
// says so, and only the rest of the result is lost.
func (k resultStore) storeWhole(f agent.Returned, whole string) agent.Returned {
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
		line = fmt.Sprintf("[not kept whole: %s]", explainLost(err))
	case k.reader:
		line = fmt.Sprintf("[kept whole, %d bytes: %s reads any part of it, ref %s]", f.Size, readresult.Name, ref)
	default:
		line = fmt.Sprintf("[kept whole, %d bytes: ref %s]", f.Size, ref)
	}
	f.Ref = ref
	f.Text = strings.TrimRight(f.Text, "\n") + "\n" + line
	return f
}

// storeChanges stores the contents of changed files, before an entry refers to them. A content that is not
// stored is only missing when the change is shown or taken back.
func (k resultStore) storeChanges(f agent.Returned, r tool.Result) agent.Returned {
	f.FilesLost = r.ChangesLost
	if len(r.Changes) == 0 {
		return f
	}
	ctx, cancel := context.WithTimeout(k.ctx, keepTimeout)
	defer cancel()
	room := int64(filechange.StoredBytesMax)
	put := func(s filechange.State) spec.FileState {
		out := s.Record()
		if !s.Kept || k.blobs == nil || s.Size > room {
			return out
		}
		if ref, err := k.blobs.Put(ctx, k.run, s.Data); err == nil {
			out.Ref = ref
			room -= s.Size
		}
		return out
	}
	for _, c := range r.Changes {
		f.Files = append(f.Files, spec.FileChange{Path: c.Path, Before: put(c.Before), After: put(c.After)})
	}
	return f
}

// explainLost tells a model why a whole result was not stored. It leaves out details that the model
// cannot act on.
func explainLost(err error) string {
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
