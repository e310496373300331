// Package readresult provides the tool that reads a result which was too large to be shown:
// an agent reads a clipped version, and the whole result is kept as a blob of its run.
package readresult

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/tool"
)

// Name of the tool.
const Name = "read_result"

// Sizes of one read: smaller than the limit at which results are clipped, so that no read is clipped again.
const (
	BytesDefault = 32 << 10
	BytesMax     = 48 << 10
)

// Errors as the model reads them.
var (
	errRef     = errors.New("ref must be the 64 hex digits that a result names where it says that it is kept whole")
	errUnknown = errors.New("no result of this run is kept under that ref; those of a run that this one was forked from are not kept here")
	errOffset  = errors.New("offset and limit must not be negative")
)

type readArgs struct {
	Ref    string `json:"ref" jsonschema:"the reference that the clipped result names"`
	Offset int64  `json:"offset,omitempty" jsonschema:"first byte to read, default 0"`
	Limit  int64  `json:"limit,omitempty" jsonschema:"most bytes to read, default 32768, at most 49152"`
}

// Reader makes the tool. It reads only blobs of the calling run. Results
// were redacted before they were kept, by the tool that produced them.
func Reader(blobs mailbox.Blobs) (tool.Tool, error) {
	return tool.New(Name, "Read a part of a result that was clipped and is kept whole.", model.Read,
		func(ctx context.Context, in readArgs, c tool.Call) (string, error) {
			if in.Offset < 0 || in.Limit < 0 {
				return "", errOffset
			}
			if in.Limit == 0 {
				in.Limit = BytesDefault
			}
			n := min(max(in.Limit, utf8.UTFMax), BytesMax)
			part, size, err := blobs.Get(ctx, c.Run, strings.TrimSpace(in.Ref), in.Offset, n)
			switch {
			case errors.Is(err, mailbox.ErrBlobRef):
				return "", errRef
			case errors.Is(err, mailbox.ErrNoBlob):
				return "", errUnknown
			case err != nil:
				return "", fmt.Errorf("the result is kept and cannot be read now: %w", err)
			case in.Offset > size:
				return "", fmt.Errorf("offset %d is beyond the end: the result has %d bytes", in.Offset, size)
			}
			return showPart(part, in.Offset, size), nil
		}, tool.MasksItself())
}

// showPart cuts a part at whole characters and says where it stands.
func showPart(part []byte, offset, size int64) string {
	for len(part) > 0 && offset > 0 && !utf8.RuneStart(part[0]) {
		part, offset = part[1:], offset+1
	}
	end := offset + int64(len(part))
	if end < size {
		part = wholeRunes(part)
		end = offset + int64(len(part))
	}
	head := fmt.Sprintf("[bytes %d to %d of %d]\n", offset, end, size)
	if end == size {
		return head + string(part)
	}
	return fmt.Sprintf("%s%s\n[more: offset %d]", head, part, end)
}

// wholeRunes drops a character that is cut at the end.
func wholeRunes(part []byte) []byte {
	for i := len(part) - 1; i >= 0 && i >= len(part)-utf8.UTFMax; i-- {
		if utf8.RuneStart(part[i]) {
			if !utf8.FullRune(part[i:]) {
				return part[:i]
			}
			break
		}
	}
	return part
}
