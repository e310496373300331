package refuse

import (
	"errors"
	"fmt"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/mailbox"
)

// NoRun refuses a request that names no run.
func NoRun(run string) error {
	return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no run %q", run), Hint: "`troupe list` shows the runs"}
}

// NoAgent refuses a request that names no agent of a run.
func NoAgent(id spec.ID, run string) error {
	return &client.Error{Code: client.CodeNotFound, Text: fmt.Sprintf("there is no agent %q in %s", id, run), Hint: "`troupe describe` shows the ids of agents"}
}

// IsNotFound reports whether what a request names is not there.
func IsNotFound(err error) bool { return HasCode(err, client.CodeNotFound) }

// IsAbsent reports whether a run is not there, or not any more.
func IsAbsent(err error) bool { return IsNotFound(err) || IsGone(err) }

// IsGone reports whether a run was deleted.
func IsGone(err error) bool { return HasCode(err, client.CodeGone) }

// HasCode reports whether an error is a refusal with a code.
func HasCode(err error, code string) bool {
	var known *client.Error
	return errors.As(err, &known) && known.Code == code
}

// RunDeleted refuses a request that names a run which was deleted.
func RunDeleted(run string) error {
	return &client.Error{Code: client.CodeGone, Text: fmt.Sprintf("the run %q was deleted", run), Hint: "`troupe list` shows the runs"}
}

// NewerLog returns the error for a request that needs a log newer than this program.
func NewerLog(at mailbox.Address) error {
	return &client.Error{Code: client.CodeConflict, Text: fmt.Sprintf("the log of %s was %v", at, statedir.ErrNewerForm), Hint: "ask a node of the newer release, or upgrade this one"}
}

// IsNewer reports whether a log could not be read because it is newer than this program.
func IsNewer(err error) bool { return HasCode(err, client.CodeConflict) }
