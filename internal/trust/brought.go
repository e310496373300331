package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/refuse"
)

// A user's own command may bring its directory to a node that this user's other command has started:
// it records the directory in the state directory, where only the user can write. The record
// counts for exactly this request, so a client that can only send requests gains no root by it.

// requestDigest identifies a request by what decides where its run acts, and what it does there.
func requestDigest(r client.RunRequest) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{"request", r.RunID, r.Dir, r.Agents, r.MCPConfig, r.Agent, r.Prompt}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// BringPlaces records that the user's own command names the directories and files of a request.
func (p Policy) BringPlaces(r client.RunRequest) error {
	a := openApprovals(p.StateDir)
	var errs []error
	for _, path := range []string{r.Dir, r.Agents, r.MCPConfig} {
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
			errs = append(errs, a.recordApproval(real, requestDigest(r)))
		}
	}
	return errors.Join(errs...)
}

// CheckNamed checks that a request may name a path: it must be below one of these places, or the user's own
// command has brought it. It also returns the place.
func (p Policy) CheckNamed(r client.RunRequest, field, path string, places []string) (real, place string, err error) {
	real, place, err = p.CheckInPlaces(field, path, places)
	if p.Brought == nil || !refuse.IsForbidden(err) {
		return real, place, err
	}
	brought, wrong := filepath.EvalSymlinks(path)
	if wrong != nil || !openApprovals(p.StateDir).isApproved(brought, requestDigest(r)) {
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
