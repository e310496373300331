package host

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

	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/model/pick"
	scriptfile "github.com/troupe-run/troupe/model/script"
	"github.com/troupe-run/troupe/tool/mcp"
)

// approvalDir holds one small file for each content that the user has approved,
// in the state directory: whoever can only send requests cannot write there.
const approvalDir = "approved"

// approvalsMax is how many are kept; the oldest are forgotten first.
const approvalsMax = 4096

// approvals are contents of files that the user has approved by naming the file in
// a command of his own. Another content under the same path is not approved.
type approvals struct {
	dir string
	max int
}

func approvalsOf(stateDir string) approvals {
	return approvals{filepath.Join(bus.StateDir(stateDir), approvalDir), approvalsMax}
}

func (a approvals) file(path, digest string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + digest))
	return filepath.Join(a.dir, hex.EncodeToString(sum[:]))
}

func (a approvals) has(path, digest string) bool {
	if digest == "" {
		return false
	}
	info, err := os.Lstat(a.file(path, digest))
	return err == nil && info.Mode().IsRegular()
}

// add records an approval; the text in the file is for people. One that is there already becomes the newest.
func (a approvals) add(path, digest string) error {
	if a.has(path, digest) {
		now := time.Now()
		err := os.Chtimes(a.file(path, digest), now, now)
		if err == nil || !errors.Is(err, fs.ErrNotExist) { // another process may have removed it
			return wrapApproval(err)
		}
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return wrapApproval(err)
	}
	return wrapApproval(os.WriteFile(a.file(path, digest), []byte(path+"\nsha256 "+digest+"\n"), 0o600))
}

func wrapApproval(err error) error {
	if err != nil {
		return fmt.Errorf("host: approvals: %w", err)
	}
	return nil
}

// trim removes the oldest approvals once there are too many. It leaves room, so that not each new one has it
// read all of them again.
func (a approvals) trim() error {
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

// Approve notes that the user names the files of a request in a command of his
// own: their content, as it is now, may bring commands. A node with the same state
// directory then takes them from the request. What is not there is not approved.
// Whoever approves an agent file approves the scripts that it names as models.
func Approve(cfg Config, r client.RunRequest) error {
	a := approvalsOf(cfg.StateDir)
	approve := func(path string, limit int64) error {
		place, data, err := readPlaced(path, limit)
		switch {
		case errors.Is(err, safefile.ErrSpecial), errors.Is(err, safefile.ErrTooLarge): // the node would not tell a client
			return bad("name a regular file", "%v", err)
		case err != nil:
			return nil // it may be a file of the machine of the node
		}
		return a.add(place, agentfile.Digest(data))
	}
	var errs []error
	routes := routesOf(r)
	if real, err := filepath.EvalSymlinks(r.Agents); err == nil && r.Agents != "" {
		defs, _, _ := agentfile.Load(real) // the node says what is wrong with the others
		for _, d := range defs {
			errs = append(errs, a.add(d.Path, d.Digest))
			routes = append(routes, routesOfFile(d)...)
		}
	}
	if r.MCPConfig != "" {
		errs = append(errs, approve(r.MCPConfig, mcp.FileBytesMax))
	}
	for _, route := range routes {
		if _, own := cfg.Own.model(route); own {
			continue // a model of the program, whatever its name
		}
		if path, ok := scriptPath(route); ok {
			errs = append(errs, approve(path, scriptfile.MaxBytes))
		}
	}
	return errors.Join(append(errs, a.trim())...)
}

// approveModel approves the script of the node's own model: the operator names it when the node starts.
func (c Config) approveModel(t tapes) error {
	if c.Still {
		return nil // it plays no model
	}
	return Approve(c, client.RunRequest{Model: c.Model, Fallback: []string{t.model("")}})
}

// Approve is Approve for a request of the program that the node is in.
func (h *Host) Approve(r client.RunRequest) error { return Approve(h.cfg, r) }

// routesOf are the models that a request names.
func routesOf(r client.RunRequest) []string {
	routes := append([]string{r.Model}, r.Fallback...)
	if m := r.Manners; m != nil {
		for _, f := range m.Fallbacks {
			routes = append(routes, f.Name)
		}
		if m.Context.Model != nil {
			routes = append(routes, m.Context.Model.Name)
		}
	}
	return routes
}

// routesOfFile are the models that an agent file names.
func routesOfFile(d agentfile.Definition) []string {
	routes := append([]string{d.Model}, d.Fallback...)
	if c := d.Manners.Context.Model; c != nil {
		routes = append(routes, c.Name)
	}
	return routes
}

// scriptPath is the file that the route of a script names.
func scriptPath(route string) (string, bool) { return strings.CutPrefix(route, pick.Script+"/") }

// errTrust: a place that is trusted must not be one in which runs write.
var errTrust = errors.New("host: a trusted place must not lie in a root, where runs write")

func (c Config) checkTrust() error {
	for _, place := range c.Trust {
		real, err := filepath.EvalSymlinks(place)
		if err != nil {
			return fmt.Errorf("host: trusted place: %w", err)
		}
		if root := containingPlace(real, c.Roots); root != "" {
			return fmt.Errorf("%w: %s is in %s; keep it elsewhere", errTrust, place, root)
		}
	}
	return nil
}

// scripts refuses a request that names a script as a model, unless the operator has approved
// its content or keeps it in a trusted place: a client must not have any other file read.
func (h *Host) scripts(r client.RunRequest) error {
	for _, route := range routesOf(r) {
		path, ok := scriptPath(route)
		if _, own := h.cfg.Own.Models[route]; !ok || own || route == h.cfg.Model {
			continue
		}
		if _, err := h.models.readScript(path, h.cfg.trustsNamedScript); err != nil {
			return h.badScript(route, path, err)
		}
	}
	return nil
}

// badScript is why a request cannot have a script. Of a file that is not approved a client learns nothing: neither
// that it is there, nor what it is.
func (h *Host) badScript(route, path string, err error) error {
	isOpen := h.cfg.ownHand || containingPlace(resolved(path), h.cfg.Trust) != ""
	switch {
	case errors.Is(err, scriptfile.ErrScript):
		return bad("see docs/models.md", "model %s: it is not a script%s", route, safefile.Where(err))
	case isOpen && errors.Is(err, fs.ErrNotExist):
		return bad("name one that is there", "model %s: there is no such file", route)
	case isOpen && !errors.Is(err, errNotApproved):
		return bad("name a regular file", "model %s: %v", route, err)
	}
	return &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf("model %s: a request cannot name a script that is missing, or that the user of this node has not approved", route),
		Hint: "check that the file is there; start the node with --trust " + filepath.Dir(path) + ", or use `troupe run -m` on its machine"}
}

// badModel is why a model cannot be had. A script that a run may have written is forbidden, whoever names it.
func badModel(err error, hint, format string, args ...any) error {
	if errors.Is(err, errNotApproved) {
		return &client.Error{Code: client.CodeForbidden, Text: fmt.Sprintf(format, args...),
			Hint: "approve the content with `troupe run -m` or `troupe run --agents` on the machine of the node, or keep the script outside of the roots"}
	}
	return bad(hint, format, args...)
}

// located is what is wrong with agent files for who asks for a run: where, and
// nothing of what stands there, unless the user himself asks in this process.
func (h *Host) located(err error) string {
	if h.cfg.ownHand {
		return err.Error()
	}
	var list []string
	for _, p := range agentfile.Problems(err) {
		switch {
		case p.Path == "":
			list = append(list, "a place of agent files cannot be read")
		case p.Line > 0:
			list = append(list, fmt.Sprintf("%s:%d: %s", p.Path, p.Line, kind(p)))
		default:
			list = append(list, p.Path+": "+kind(p)+safefile.Where(p.Err))
		}
	}
	return strings.Join(list, "; ")
}

// kind is what a problem is about, in words of ours.
func kind(err error) string {
	for _, known := range []error{agentfile.ErrField, agentfile.ErrTooLarge, agentfile.ErrFrontMatter, safefile.ErrSpecial, safefile.ErrOutside, fs.ErrPermission} {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), "agentfile: ")
		}
	}
	return "not an agent file"
}
