package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/refuse"
)

// A user's own command may bring its directory to a node that this user's other command has started:
// it records the directory in the state directory, where only the user can write. The record
// counts for exactly this request and for a short time, so a client that can only send requests
// gains no root by it.

const (
	// broughtDir holds one small file for each path of a request that the user's command brings.
	broughtDir = "brought"
	// broughtFor is how long a record counts: longer than a command waits for a busy node.
	broughtFor = 10 * time.Minute
)

func openBrought(stateDir string) approvalStore {
	return approvalStore{filepath.Join(statedir.StateDir(stateDir), broughtDir), approvalsMax}
}

// requestDigest identifies a request by its fields: each of them may decide what its run does in the
// directory, except the trace context, which the connection may add. It is taken of the request as a node decodes it.
func requestDigest(r client.RunRequest) (string, error) {
	r.Trace = ""
	sent, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("trust: request: %w", err)
	}
	var decoded client.RunRequest
	if err := json.Unmarshal(sent, &decoded); err != nil {
		return "", fmt.Errorf("trust: request: %w", err)
	}
	if sent, err = json.Marshal(decoded); err != nil {
		return "", fmt.Errorf("trust: request: %w", err)
	}
	sum := sha256.Sum256(append([]byte("request\x00"), sent...))
	return hex.EncodeToString(sum[:]), nil
}

// BringPlaces records that the user's own command sends a request, and names its directories and files. It removes
// the records that have expired.
func (p Policy) BringPlaces(r client.RunRequest) error {
	digest, err := requestDigest(r)
	if err != nil {
		return err
	}
	brought := openBrought(p.StateDir)
	errs := []error{brought.removeBefore(time.Now().Add(-broughtFor))}
	errs = append(errs, brought.recordApproval(ownCommand, digest))
	for _, path := range []string{r.Dir, r.Agents, r.MCPConfig} {
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
			errs = append(errs, brought.recordApproval(real, digest))
		}
	}
	return errors.Join(errs...)
}

// BringDir records that the user's own command names the directory of a request that another program asks for through
// it, and nothing else of the request.
func (p Policy) BringDir(r client.RunRequest) error {
	digest, err := requestDigest(r)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(r.Dir)
	if err != nil {
		return fmt.Errorf("trust: directory of the request: %w", err)
	}
	brought := openBrought(p.StateDir)
	return errors.Join(brought.removeBefore(time.Now().Add(-broughtFor)), brought.recordApproval(real, digest))
}

// ownCommand replaces a path in the record of the request itself; it is no absolute path.
const ownCommand = "sent by the user"

// IsOwnRequest reports whether a command of the user of this node has just sent this request: it could write the state
// directory, which a client over NATS or HTTP cannot.
func (p Policy) IsOwnRequest(r client.RunRequest) bool {
	return p.RequestsFromUser || p.isBrought(ownCommand, r)
}

// isBrought reports whether the user's own command has just recorded a path of this request.
func (p Policy) isBrought(real string, r client.RunRequest) bool {
	if p.asked != nil {
		r = *p.asked
	}
	digest, err := requestDigest(r)
	return err == nil && openBrought(p.StateDir).isApprovedSince(real, digest, time.Now().Add(-broughtFor))
}

// CheckNamed checks that a request may name a path: it must be below one of these places, or the user's own
// command has brought it. It also returns the place.
func (p Policy) CheckNamed(r client.RunRequest, field, path string, places []string) (real, place string, err error) {
	real, place, err = p.CheckInPlaces(field, path, places)
	if p.Brought == nil || !refuse.IsForbidden(err) {
		return real, place, err
	}
	brought, wrong := filepath.EvalSymlinks(path)
	if wrong != nil || !p.isBrought(brought, r) {
		return "", "", err
	}
	if path == r.Dir {
		p.Brought.add(brought)
	}
	if place = brought; field == "mcp_config" {
		place = filepath.Dir(brought)
	}
	return brought, place, nil
}

// BroughtDirs are the directories that requests have brought to a node. Runs write there, as in
// roots. It is safe for concurrent use.
type BroughtDirs struct {
	mu   sync.Mutex
	dirs map[string]bool
}

func (b *BroughtDirs) add(dir string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dirs == nil {
		b.dirs = map[string]bool{}
	}
	b.dirs[dir] = true
}

func (b *BroughtDirs) list() (dirs []string) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for dir := range b.dirs {
		dirs = append(dirs, dir)
	}
	return dirs
}
