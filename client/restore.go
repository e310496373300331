package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/mailbox"
)

// RestoreRequest restores a run from a run file, whose parts were sent by AttachRequest under the id Upload. It may be
// sent again: a restore goes on where it was broken off.
type RestoreRequest struct {
	RunID  string   `json:"run_id"` // of the run in the file
	Upload string   `json:"upload"`
	Parts  []string `json:"parts"` // of the file, in order
	// Named holds the files that the run may use here, as for a new run: Dir, Agents and MCPConfig. It goes on in Dir,
	// which may be another directory than that of the file. Other fields are ignored.
	Named RunRequest `json:"named"`
	// Answers are decisions about questions that are open in the file. RunID and Request of each are ignored.
	Answers []AnswerRequest `json:"answers,omitempty"`
	// OriginalStopped says that the original of an unfinished run does not work any more, and never will.
	OriginalStopped bool `json:"original_stopped,omitempty"`
	// AcceptApprovals lets approvals count that the file says people or hooks have given.
	AcceptApprovals bool `json:"accept_approvals,omitempty"`
}

// Restored answers a RestoreRequest.
type Restored struct {
	RunID   string   `json:"run_id"`
	State   RunState `json:"state"` // finished, parked or live
	Logs    int      `json:"logs"`
	Entries int      `json:"entries"`
	// Existed: the run was restored from this file before.
	Existed bool `json:"existed,omitempty"`
	// Notes say how the restored run differs from the one in the file.
	Notes []string `json:"notes,omitempty"`
	// More: only a part is restored. Send the request again.
	More bool `json:"more,omitempty"`
}

// removeTimeout bounds the removal of an upload.
const removeTimeout = 10 * time.Second

// Restore sends a run file and restores its run. It does not return before the whole run is restored.
func Restore(ctx context.Context, c *Client, file []byte, r RestoreRequest) (done Restored, err error) {
	if len(file) > mailbox.RunBlobBytesMax {
		return done, fmt.Errorf("client: restore: the file has %d bytes, at most %d can be sent to a node", len(file), mailbox.RunBlobBytesMax)
	}
	r.Upload = NewID()
	sent, err := c.Attach(ctx, r.Upload, "", "", file)
	if r.Parts = sent.Parts; err != nil {
		return done, removeUpload(ctx, c, r.Upload, fmt.Errorf("client: restore: send the file: %w", err))
	}
	for done.More = true; done.More; {
		if done, err = askRestore(ctx, c, r); err != nil {
			return done, removeUpload(ctx, c, r.Upload, err)
		}
	}
	return done, nil
}

// askRestore sends a request whose file is there. One that names a directory goes to the nodes of this
// machine, if there are any.
func askRestore(ctx context.Context, c *Client, r RestoreRequest) (done Restored, err error) {
	if r.Named.Dir != "" {
		machine, _ := os.Hostname() // empty without one
		subject, err := c.names.MachineCommand("restore", machine)
		if err == nil {
			err = c.askAt(ctx, subject, "restore", r, &done)
		}
		if !errors.Is(err, nats.ErrNoResponders) {
			return done, err
		}
	}
	err = c.askNode(ctx, "restore", r, &done)
	return done, err
}

// removeUpload removes the parts of a file whose restore ended with an error, also after the end of ctx.
func removeUpload(ctx context.Context, c *Client, upload string, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	if err := c.Withdraw(ctx, upload); err != nil {
		return fmt.Errorf("%w; the file stays in the store as %s: %w", why, upload, err)
	}
	return why
}
