package request

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/runspec"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/model"
)

// attachment is a file of --attach.
type attachment struct {
	name, mime string
	data       []byte
}

// readAttachments reads the files of --attach.
func readAttachments(files []string) ([]attachment, error) {
	if len(files) > model.MediaMax {
		return nil, exit.UsageError("copy larger files into the directory",
			"%d files are attached, at most %d can be", len(files), model.MediaMax)
	}
	var list []attachment
	total := 0
	for _, file := range files {
		a, err := readAttachment(file)
		if err != nil {
			return nil, err
		}
		if total += len(a.data); total > node.AttachedBytesMax {
			return nil, exit.UsageError("make them smaller, or copy some into the directory",
				"the attachments have more than %d bytes in total", node.AttachedBytesMax)
		}
		list = append(list, a)
	}
	return list, nil
}

func readAttachment(file string) (a attachment, err error) {
	bad := func(hint, format string, args ...any) (attachment, error) {
		return a, exit.UsageError(hint, "--attach %s: %s", file, fmt.Sprintf(format, args...))
	}
	a.data, err = safefile.Read(file, model.MediaBytesMax)
	if err != nil && !errors.Is(err, safefile.ErrTooLarge) {
		return bad("name a file that can be read", "%s", safefile.WithoutName(err))
	}
	if err != nil || len(a.data) == 0 {
		return bad("make it smaller, or put it into the directory", "it must have 1 to %d bytes", model.MediaBytesMax)
	}
	a.name, a.mime = filepath.Base(file), runspec.MediaType(file, a.data)
	if model.KindOf(a.mime) == "" {
		return bad("attach PNG, JPEG, GIF, WebP, PDF or text", "it is %s", a.mime)
	}
	return a, nil
}
