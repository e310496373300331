package runspec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/refuse"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/toolset/shell"
	"github.com/troupe-run/troupe/internal/trust"
)

// UserRules re-reads the user's permission rules for each run: those of the settings of the user who runs the node, and
// those for single directories beside them.
type UserRules struct {
	file string
	had  atomic.Bool // the file was there before
}

// OpenUserRules returns the rules of a settings file. It reads nothing yet.
func OpenUserRules(file string) *UserRules {
	u := &UserRules{file: file}
	_, err := os.Stat(file)
	u.had.Store(err == nil)
	return u
}

// operatorRules are the permissions of the operator for one run, and the operator's rules about commands.
type operatorRules struct {
	permissions spec.Permissions
	shell       agentfile.ToolRule
	place       string // begins the place of the rules about commands
}

const userRulesHint = "fix that file on the machine of the node: `troupe config validate` there shows all errors; see docs/permissions.md#where-rules-come-from"

// readOperatorRules returns the operator's rules as they are now. A run is refused while they cannot be read: without them,
// its agents could do what the rules prevent.
func readOperatorRules(cfg *Config) (operatorRules, error) {
	u := cfg.UserRules
	if u == nil {
		return operatorRules{permissions: cfg.Permissions, shell: cfg.Tools.OperatorRule(shell.Name)}, nil
	}
	own, err := agentfile.LoadShared(u.file)
	_, missing := os.Stat(u.file) // after it was read: a file that is gone is read as an empty one
	switch isMissing := errors.Is(missing, fs.ErrNotExist); {
	case isMissing && u.had.Load():
		return operatorRules{}, refuse.Bad("put it back, or restart the node to run without it; see docs/permissions.md#where-rules-come-from",
			"the settings of the user of this node are gone since it read them, and with them the permission rules: %s", u.file)
	case !isMissing:
		u.had.Store(true)
	}
	if err != nil {
		return operatorRules{}, refuse.Bad(userRulesHint, "the permission rules of the user of this node cannot be read: %s", u.describe(err, cfg.Trust))
	}
	rules := operatorRules{permissions: own.Permissions, place: u.file + ": "}
	if i := slices.IndexFunc(own.Tools, func(r agentfile.ToolRule) bool { return r.Name == shell.Name }); i >= 0 {
		rules.shell = own.Tools[i]
	}
	return rules, nil
}

// ofDirectory returns the user's rules for the directory of a run.
func (u *UserRules) ofDirectory(dir string, t trust.Policy) (p spec.Permissions, err error) {
	if u == nil || dir == "" {
		return p, nil
	}
	if p, err = agentfile.LoadProject(filepath.Dir(u.file), dir); err != nil {
		return p, refuse.Bad(userRulesHint, "the rules of the user of this node for the directory cannot be read: %s", u.describe(err, t))
	}
	return p, nil
}

// describe describes the errors of the user's files to any client: each with a place, and without content.
func (u *UserRules) describe(err error, t trust.Policy) string {
	if _, hasPlace := errors.AsType[*agentfile.Problem](err); !hasPlace {
		err = &agentfile.Problem{Path: u.file, Err: err}
	}
	return t.DescribeErrors(err)
}

// digest identifies the content of the settings file; "": there is no such file. ok: it could be read.
func (u *UserRules) digest() (digest string, ok bool) {
	if u == nil {
		return "", true
	}
	data, err := safefile.Read(u.file, agentfile.FileBytesMax)
	if err != nil {
		return "", errors.Is(err, fs.ErrNotExist)
	}
	return agentfile.ContentDigest(data), true
}
