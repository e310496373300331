// Package recording holds the commands that work on the recorded logs of a run: of a node, or of a run
// file, for which no node is needed.
package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/mailbox"
)

// Commands work on recorded logs.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
}

// exactlyOne accepts one argument.
func exactlyOne(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return exit.UsageError(c.CommandPath()+" --help shows an example",
		"%s takes one run, or one run file, not %d arguments", c.Name(), len(args))
}

// isPath reports whether an argument is a file: the id of a run has neither a dot nor a slash.
func isPath(text string) bool { return strings.ContainsAny(text, `./\`) }

// agentIn returns the id of the agent of a file that a person means: see session.ChooseAgent.
func agentIn(f runfile.File, word string) (string, error) {
	var agents []session.NamedAgent
	runfile.EachAgent(f.Entries, func(id, name string) { agents = append(agents, session.NamedAgent{ID: id, Name: name}) })
	return session.ChooseAgent(f.Header.Run, word, agents)
}

// Load reads the logs of a run: from a run file, or from a node.
func (cs *Commands) Load(text string) (f runfile.File, err error) {
	if isPath(text) {
		return ReadFile(text)
	}
	err = cs.Sessions.VisitRun(session.ToInspect, text, func(ctx context.Context, s *session.Session, run string) error {
		f, err = ReadRun(ctx, s.Client, run)
		return err
	})
	return f, err
}

// ReadFile reads a run file.
func ReadFile(path string) (runfile.File, error) {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return runfile.File{}, exit.UsageError("troupe dump RUN > FILE writes a run file; troupe list shows the runs", "%s: there is no such file", path)
	}
	if err != nil {
		return runfile.File{}, err
	}
	info, err := in.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = exit.UsageError("name a run file", "%s is not a regular file", path)
	case err == nil && info.Size() > runfile.FileBytesMax:
		err = exit.UsageError("a run file is smaller", "%s has %d bytes, at most %d", path, info.Size(), runfile.FileBytesMax)
	}
	var f runfile.File
	if err == nil {
		f, err = runfile.Read(in)
	}
	if errors.Is(err, runfile.ErrFile) {
		err = exit.UsageError("troupe export RUN --logs writes a run file", "%s: %s", path, strings.TrimPrefix(err.Error(), "runfile: "))
	}
	if errors.Is(err, runfile.ErrNewer) {
		err = exit.UsageError("install the newer troupe", "%s: %s", path, strings.TrimPrefix(err.Error(), "runfile: "))
	}
	return f, errors.Join(err, in.Close())
}

// refuseRedacted refuses a file without content.
func refuseRedacted(f runfile.File) error {
	if !f.Header.Redacted {
		return nil
	}
	return exit.UsageError("name the run itself, or a file without --redact",
		"the file of %s is redacted: it has no content", f.Header.Run)
}

// ReadRun reads the logs of a run from a node, with the state and the result that the node knows. A run that is live
// moves on meanwhile, so that one log may end earlier than another. Of a run that has finished they are read again,
// for a moment, until they have the end: the last entry follows the result.
func ReadRun(ctx context.Context, c *client.Client, run string) (runfile.File, error) {
	f := runfile.File{Header: runfile.Header{Run: run, WrittenBy: control.Version()}}
	for try := 1; ; try++ {
		info, err := c.Get(ctx, run)
		if err != nil {
			return f, err
		}
		if f.Entries, err = c.Logs(ctx, run); err != nil {
			return f, err
		}
		f.Header.State = string(info.State)
		switch {
		case info.State == client.RunFinished && (runfile.HasEnd(f.Entries) || try == endTries):
			return f, tellResult(&f, info)
		case info.State == client.RunParked:
			now, err := c.Get(ctx, run) // a person may have answered meanwhile
			if err == nil && now.State != info.State {
				f.Header.State = string(client.RunLive)
			}
			return f, err
		case info.State != client.RunFinished:
			return f, nil
		}
		if err := session.Pause(ctx, endPause); err != nil {
			return f, err
		}
	}
}

// How often, and after which pause, the logs of a finished run are read until they have its end.
const (
	endTries = 20
	endPause = 50 * time.Millisecond
)

// tellResult notes the result of a finished run in the header.
func tellResult(f *runfile.File, info client.RunInfo) (err error) {
	if info.Result == nil {
		return nil
	}
	if f.Header.Result, err = json.Marshal(info.Result); err != nil {
		return fmt.Errorf("the result of %s: %w", info.RunID, err)
	}
	return nil
}

// ReadBlobs adds the contents of changed files, whole results and attachments to the logs of a run: each blob
// that a fact of its agents names, up to the limits of a run file. It returns how many the node does not have.
func ReadBlobs(ctx context.Context, c *client.Client, f *runfile.File) (missing int, err error) {
	f.Blobs = map[string][]byte{}
	room := int64(runfile.FileBytesMax / 2) // as base64 they grow by a third
	for _, ref := range runfile.NamedBlobs(f.Entries) {
		data, err := c.Blob(ctx, f.Header.Run, ref)
		var refused *client.Error
		switch {
		case errors.As(err, &refused) && refused.Code == client.CodeNotFound, errors.Is(err, mailbox.ErrNoBlob):
			missing++
			continue
		case err != nil:
			return missing, err
		}
		if room -= int64(len(data)); room < 0 || len(f.Blobs) >= runfile.BlobsMax {
			return missing, exit.UsageError("leave out --blobs",
				"the blobs of %s are larger than a run file may be", f.Header.Run)
		}
		f.Blobs[ref] = data
	}
	return missing, nil
}

// Print writes a run file to stdout: as it is to a pipe or a file, made harmless to a terminal. The only text that is not
// encoded is the result; it is escaped before the sum of the lines is made, so that the sum holds for what is shown.
func Print(c *console.Console, f runfile.File) error {
	if term.IsTTY(c.Out) {
		f.Header.Result = term.CleanJSON(f.Header.Result)
	}
	data, err := encode(f)
	if err != nil {
		return err
	}
	if term.IsTTY(c.Out) {
		data = term.CleanJSON(data)
	}
	return c.Write(data)
}

// encode returns the bytes of a run file.
func encode(f runfile.File) ([]byte, error) {
	var out bytes.Buffer
	err := runfile.Write(&out, f)
	return out.Bytes(), err
}
