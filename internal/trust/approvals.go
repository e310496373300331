package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/mcpclient"
	"github.com/troupe-run/troupe/internal/provider"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/safefile"
	scriptfile "github.com/troupe-run/troupe/model/script"
)

// approvalDir holds one small file for each content that the user has approved. It is in
// the state directory, where a client that can only send requests cannot write.
const approvalDir = "approved"

// approvalsMax is how many approvals are kept; the oldest are removed first.
const approvalsMax = 4096

// approvalStore are contents of files that the user has approved by naming the file in a
// command. Another content under the same path is not approved.
type approvalStore struct {
	dir string
	max int
}

func openApprovals(stateDir string) approvalStore {
	return approvalStore{filepath.Join(statedir.StateDir(stateDir), approvalDir), approvalsMax}
}

func (a approvalStore) approvalPath(path, digest string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + digest))
	return filepath.Join(a.dir, hex.EncodeToString(sum[:]))
}

func (a approvalStore) isApproved(path, digest string) bool {
	return a.isApprovedSince(path, digest, time.Time{})
}

// isApprovedSince is isApproved for an approval that was recorded after a time.
func (a approvalStore) isApprovedSince(path, digest string, since time.Time) bool {
	if digest == "" {
		return false
	}
	info, err := os.Lstat(a.approvalPath(path, digest))
	return err == nil && info.Mode().IsRegular() && info.ModTime().After(since)
}

// recordApproval records an approval; the text in the file is for people. An approval that exists already becomes the
// newest.
func (a approvalStore) recordApproval(path, digest string) error {
	if a.isApproved(path, digest) {
		now := time.Now()
		err := os.Chtimes(a.approvalPath(path, digest), now, now)
		if err == nil || !errors.Is(err, fs.ErrNotExist) { // another process may have removed it
			return wrapApproval(err)
		}
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return wrapApproval(err)
	}
	return wrapApproval(os.WriteFile(a.approvalPath(path, digest), []byte(path+"\nsha256 "+digest+"\n"), 0o600))
}

func wrapApproval(err error) error {
	if err != nil {
		return fmt.Errorf("trust: approvals: %w", err)
	}
	return nil
}

// removeOldest removes the oldest approvals once there are too many. It leaves room, so that not every new approval
// makes it read all of them again.
func (a approvalStore) removeOldest() error {
	entries, err := os.ReadDir(a.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) <= a.max {
		return nil
	}
	if err != nil {
		return wrapApproval(err)
	}
	times := make(map[string]time.Time, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else another process has removed it
			times[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return times[x.Name()].Compare(times[y.Name()]) })
	for _, e := range entries[:len(entries)-a.max*7/8] {
		if err := os.Remove(filepath.Join(a.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrapApproval(err)
		}
	}
	return nil
}

// removeBefore removes the approvals that were recorded before a time.
func (a approvalStore) removeBefore(limit time.Time) error {
	entries, err := os.ReadDir(a.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{wrapApproval(err)}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(limit) { // an error: another process has removed it
			continue
		}
		if err := os.Remove(filepath.Join(a.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, wrapApproval(err))
		}
	}
	return errors.Join(errs...)
}

// ApproveRequest records that the user names the files of a request in a command: their current
// content may define commands. A node with the same state directory then accepts those
// files in the request. Files that do not exist are not approved. An approved agent file
// also approves the scripts that it names as models. isOwn reports routes that the program
// itself provides, whatever their names.
func (p Policy) ApproveRequest(r client.RunRequest, isOwn func(route string) bool) error {
	isScript := func(route string) bool {
		_, ok := ScriptPath(route)
		return ok
	}
	if r.Agents == "" && r.MCPConfig == "" && !slices.ContainsFunc(RoutesOf(r), isScript) {
		return nil // it names no files
	}
	a := openApprovals(p.StateDir)
	approve := func(path string, limit int64) error {
		place, data, err := ReadResolved(path, limit)
		switch {
		case errors.Is(err, safefile.ErrSpecial), errors.Is(err, safefile.ErrTooLarge): // a client must not learn this
			return refuse.Bad("name a regular file", "%v", err)
		case err != nil:
			return nil // it may be a file on the node's machine
		}
		return a.recordApproval(place, agentfile.ContentDigest(data))
	}
	var errs []error
	routes := RoutesOf(r)
	if real, err := filepath.EvalSymlinks(r.Agents); err == nil && r.Agents != "" {
		defs, _, _ := agentfile.Load(real) // the node reports the errors of the others
		for _, d := range defs {
			errs = append(errs, a.recordApproval(d.Path, d.Digest))
			routes = append(routes, RoutesOfFile(d)...)
		}
	}
	if r.MCPConfig != "" {
		errs = append(errs, approve(r.MCPConfig, mcpclient.FileBytesMax))
	}
	for _, route := range routes {
		if isOwn(route) {
			continue
		}
		if path, ok := ScriptPath(route); ok {
			errs = append(errs, approve(path, scriptfile.MaxBytes))
		}
	}
	return errors.Join(append(errs, a.removeOldest())...)
}

// RoutesOf returns the models that a request names.
func RoutesOf(r client.RunRequest) []string {
	routes := append([]string{r.Model}, r.Fallback...)
	if m := r.LoopOptions; m != nil {
		for _, f := range m.Fallbacks {
			routes = append(routes, f.Name)
		}
		if m.Context.Model != nil {
			routes = append(routes, m.Context.Model.Name)
		}
	}
	return routes
}

// RoutesOfFile returns the models that an agent file names.
func RoutesOfFile(d agentfile.Definition) []string {
	routes := append([]string{d.Model}, d.Fallback...)
	if c := d.LoopOptions.Context.Model; c != nil {
		routes = append(routes, c.Name)
	}
	return routes
}

// ScriptPath returns the file that the route of a script names.
func ScriptPath(route string) (string, bool) { return strings.CutPrefix(route, provider.Script+"/") }

// ErrTrust: a trusted place must not be one in which runs write.
var ErrTrust = errors.New("trust: a trusted place must not lie in a root, where runs write")

// CheckPlaces refuses trusted places in a root.
func (p Policy) CheckPlaces() error {
	for _, place := range p.Places {
		real, err := filepath.EvalSymlinks(place)
		if err != nil {
			return fmt.Errorf("trust: trusted place: %w", err)
		}
		if root := ContainingPlace(real, p.Roots); root != "" {
			return fmt.Errorf("%w: %s is in %s; keep it in another directory", ErrTrust, place, root)
		}
	}
	return nil
}

// DescribeErrors describes the errors of agent files to the client that requests the run: their
// positions, but none of the files' content, unless the user asks in this same process.
func (p Policy) DescribeErrors(err error) string {
	if p.RequestsFromUser {
		return agentfile.Sentences(err)
	}
	var list []string
	for _, wrong := range agentfile.SplitProblems(err) {
		switch {
		case wrong.Path == "":
			list = append(list, "a place of agent files cannot be read")
		case wrong.Line > 0:
			list = append(list, fmt.Sprintf("%s:%d: %s", wrong.Path, wrong.Line, problemKind(wrong)))
		default:
			list = append(list, wrong.Path+": "+problemKind(wrong)+safefile.ErrorLine(wrong.Err))
		}
	}
	return strings.Join(list, "; ")
}

// problemKind returns the kind of a problem in troupe's own words.
func problemKind(err error) string {
	for _, known := range []error{agentfile.ErrField, agentfile.ErrTooLarge, agentfile.ErrFrontMatter, safefile.ErrSpecial, safefile.ErrOutside, fs.ErrPermission} {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "agentfile: ")
		}
	}
	return "not an agent file"
}
