package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/history"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/control"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/safefile"
)

func (a *runsCommands) exportCommand() *cobra.Command {
	var who string
	c := &cobra.Command{
		Use: "export RUN[@TURN]", Args: exactly("RUN"),
		Short: "Write the history of an agent as JSON, whole",
		Long: `Write the history of an agent as JSON: every message, struck ones too, with usage and
what only the provider understands. "run --history FILE" begins a run with it.`,
		Example: `  troupe export 01k9z3 > history.json
  troupe export 01k9z3@4 --agent root-1-0 | jq '.messages[].text'
  troupe run --history history.json "And what about the tests?"`,
		Annotations: map[string]string{formats: "json jsonl yaml"},
		RunE: func(_ *cobra.Command, args []string) error {
			run, turn, err := control.ParseFork(args[0])
			if err != nil {
				return usage("troupe export RUN, or RUN@TURN", "%q names no run", args[0])
			}
			after := &turn
			if turn < 0 {
				after = nil
			}
			return a.sessions.visit(toLook, func(ctx context.Context, s *seat) error {
				doc, err := s.Export(ctx, run, who, after)
				if err != nil {
					return err
				}
				return a.console.printJSON(doc)
			})
		},
	}
	c.Flags().StringVar(&who, "agent", "", "agent's id (default root)")
	return c
}

// historyBytesMax bounds a file that is read as a history: the largest history
// that may be imported, and its JSON.
const historyBytesMax = 8 * history.BytesMax

// readPast reads an exported history, and rejects an invalid one before the command
// sends it to a node.
func readPast(path string) (*history.Transcript, error) {
	doc, err := safefile.Read(path, historyBytesMax)
	if errors.Is(err, safefile.ErrTooLarge) {
		return nil, usage("leave the oldest messages out", "--history %s has more than %d bytes", path, historyBytesMax)
	}
	if err != nil {
		return nil, usage("name a file that troupe export has written", "--history: %s", err)
	}
	d := json.NewDecoder(strings.NewReader(string(doc)))
	d.DisallowUnknownFields()
	var past history.Transcript
	if err := d.Decode(&past); err != nil {
		return nil, usage("name a file that troupe export has written", "--history %s: %s", path, where(doc, d, err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, usage("name a file that troupe export has written", "--history %s: something follows the document", path)
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
		return nil, usage(hint, "--history %s: %s", path, err)
	}
	return &past, nil
}

// where returns the line of a document in which an error was met, and the error in words of JSON.
func where(doc []byte, d *json.Decoder, err error) string {
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

// past reads the imported history that a run begins with.
func (r *runFlags) past() (err error) {
	switch {
	case r.history == "" && r.request.Fork == "":
		return nil
	case r.history != "" && r.request.Fork != "":
		return usage("leave one of them out", "--fork and --history contradict each other")
	case r.resume != "":
		return usage("leave --resume out for a new run", "a run that is resumed has its history already")
	case r.history != "":
		r.recalled, err = readPast(r.history)
		return err
	}
	run, _, err := control.ParseFork(r.request.Fork)
	if err != nil || names.Token(run) != nil {
		return usage("name a run, or RUN@TURN; troupe list shows the runs", "--fork %q", r.request.Fork)
	}
	return nil
}

// begin requests a run, after it has sent the history that the run begins with.
func (flags *runFlags) begin(s *seat, stateDir string) (client.RunAccepted, error) {
	r := flags.request
	if flags.recalled != nil {
		h, err := s.Recall(s.ctx, r.RunID, *flags.recalled)
		if err != nil {
			return client.RunAccepted{}, err
		}
		r.History = &h
	}
	for _, f := range flags.attached {
		sent, err := s.Attach(s.ctx, r.RunID, f.name, f.mime, f.data)
		if err != nil {
			return client.RunAccepted{}, withdrawn(s, r.RunID, err)
		}
		r.Attach = append(r.Attach, sent)
	}
	// The user has named these files explicitly: a node of the same state directory
	// may use their current content.
	if err := node.Approve(node.Config{StateDir: stateDir}, r); err != nil {
		return client.RunAccepted{}, err
	}
	accepted, err := s.Run(s.ctx, r)
	if sent := flags.recalled != nil || len(r.Attach) > 0; sent && refused(err) {
		err = withdrawn(s, r.RunID, err)
	}
	return accepted, err
}

// refused reports whether the node rejected the request. Without an answer the run may exist.
func refused(err error) bool {
	var known *client.Error
	return errors.As(err, &known) && known.Code != client.CodeInternal && known.Code != client.CodeUnavailable
}

// withdrawTime bounds the attempt to withdraw an imported history.
const withdrawTime = 10 * time.Second

// withdrawn withdraws the history that was sent before a run that is not created. A run that
// exists keeps its history.
func withdrawn(s *seat, run string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), withdrawTime)
	defer cancel()
	err := s.Withdraw(ctx, run)
	if known := (*client.Error)(nil); err == nil || errors.As(err, &known) && known.Code == client.CodeConflict {
		return why
	}
	left := fmt.Sprintf("; what was sent before it stays in the store: %v", err)
	if known := (*client.Error)(nil); errors.As(why, &known) { // a client.Error shows only its own text
		return &client.Error{Code: known.Code, Text: known.Text + left, Hint: known.Hint}
	}
	return fmt.Errorf("%w%s", why, left)
}
