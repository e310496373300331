package request

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/safefile"
)

// historyBytesMax bounds a file that is read as a history: the largest history
// that may be imported, and its JSON.
const historyBytesMax = 8 * history.BytesMax

// readHistory reads an exported history, and rejects an invalid one before the command
// sends it to a node.
func readHistory(path string) (*history.Transcript, error) {
	doc, err := safefile.Read(path, historyBytesMax)
	if errors.Is(err, safefile.ErrTooLarge) {
		return nil, exit.UsageError("leave the oldest messages out",
			"--history %s has more than %d bytes", path, historyBytesMax)
	}
	if err != nil {
		return nil, exit.UsageError("name a file that troupe export has written", "--history: %s", err)
	}
	d := json.NewDecoder(strings.NewReader(string(doc)))
	d.DisallowUnknownFields()
	var past history.Transcript
	if err := d.Decode(&past); err != nil {
		return nil, exit.UsageError("name a file that troupe export has written", "--history %s: %s", path, locateError(doc, d, err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, exit.UsageError("name a file that troupe export has written",
			"--history %s: something follows the document", path)
	}
	err = past.Check()
	if err == nil {
		_, err = agent.RecallParts(past, "file") // it must also fit the log
	}
	if err != nil {
		hint := "name a file that troupe export has written"
		if known := (*history.Error)(nil); errors.As(err, &known) {
			hint = known.Remedy
		}
		return nil, exit.UsageError(hint, "--history %s: %s", path, err)
	}
	return &past, nil
}

// locateError returns the line of a document in which an error was met, and the error in words of JSON.
func locateError(doc []byte, d *json.Decoder, err error) string {
	at, what := d.InputOffset(), strings.TrimPrefix(err.Error(), "json: ")
	var syntax *json.SyntaxError
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &other):
		at, what = other.Offset, fmt.Sprintf("%s cannot be a %s", cmp.Or(other.Field, "the document"), other.Value)
	case errors.Is(err, io.EOF):
		return "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends in the middle"
	}
	line := 1 + strings.Count(string(doc[:min(max(at, 0), int64(len(doc)))]), "\n")
	return fmt.Sprintf("line %d: %s", line, what)
}

// completeHistory reads the imported history that a run begins with.
func (r *Flags) completeHistory() (err error) {
	switch {
	case r.history == "" && r.Request.Fork == "":
		return nil
	case r.history != "" && r.Request.Fork != "":
		return exit.UsageError("leave one of them out", "--fork and --history contradict each other")
	case r.Resume != "":
		return exit.UsageError("leave --resume out for a new run", "a run that is resumed has its history already")
	case r.history != "":
		r.imported, err = readHistory(r.history)
		return err
	}
	if r.forksTree() {
		return nil // the node says which points there are
	}
	run, _, err := control.ParseFork(r.Request.Fork)
	if err != nil || names.CheckToken(run) != nil {
		return exit.UsageError("name a run, or RUN@TURN; troupe list shows the runs", "--fork %q is invalid", r.Request.Fork)
	}
	return nil
}
