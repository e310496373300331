// Package trust decides whose files a node executes. A request, an agent file or a log may
// name agent files, scripts and files of MCP servers. A node accepts what they define
// (command lines, hooks, programs) only from places where no run can write, or if the user
// has approved exactly this content.
package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/config/agentfile"
	"github.com/troupe-run/troupe/internal/safefile"
	"github.com/troupe-run/troupe/internal/workdir"
	scriptfile "github.com/troupe-run/troupe/model/script"
)

// Policy holds the places of a node by which it decides about trust.
type Policy struct {
	// Roots are the directories that clients may name, and where runs write.
	Roots []string
	// Brought are further directories, which the user's own commands have brought, and where runs write; nil: none
	// may be brought.
	Brought *BroughtDirs
	// Places are trusted: requests may name their files with everything that these define.
	Places []string
	// StateDir holds the approvals of the user.
	StateDir string
	// RequestsFromUser: requests come from the user in this same process, so the user has chosen what
	// they name.
	RequestsFromUser bool

	asked *client.RunRequest // see ForRequest
}

// ForRequest returns the policy for a run that is built for a request like another one: what the user's command has
// brought for asked may be named.
func (p Policy) ForRequest(asked client.RunRequest) Policy {
	p.asked = &asked
	return p
}

// ContainingPlace returns the resolved path of the first place that contains real, or "".
func ContainingPlace(real string, places []string) string {
	for _, place := range places {
		place, err := filepath.EvalSymlinks(place)
		if err != nil {
			continue
		}
		if workdir.IsBelow(place, real) || hasAbove(real, place) {
			return place
		}
	}
	return ""
}

// hasAbove reports whether dir is path or one of the directories above it. It compares files and not
// names: two names of one directory may differ in case, or come from two mounts.
func hasAbove(path, dir string) bool {
	for ; ; path = filepath.Dir(path) {
		if isSame(path, dir) {
			return true
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}

func isSame(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// mayChange reports whether a run may write a file, or choose which file its path leads to: the file, or a link on
// the way to it, is in the directory of this run or in a root, where the directory of another run may be. place is
// where the path leads. If a path leads nowhere, a run may just have changed it.
func (p Policy) mayChange(path, workspace string) (place string, may bool) {
	places := slices.Concat(p.Roots, p.Brought.list())
	if workspace != "" {
		places = append(places, workspace)
	}
	stops, err := resolutionSteps(path)
	if err != nil {
		return "", true
	}
	isIn := func(stop string) bool { return ContainingPlace(stop, places) != "" }
	return stops[len(stops)-1], isIn(path) || slices.ContainsFunc(stops, isIn)
}

// linksMax is the maximum number of links in a path.
const linksMax = 40

var errLinks = errors.New("trust: the path leads through too many links")

// resolutionSteps follows a path, and returns everything that decides where it leads: the location of each link, each
// directory whose parent the target of a link names by "..", and last the location of the file itself,
// without links.
func resolutionSteps(path string) (stops []string, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	const separator = string(filepath.Separator)
	top := filepath.VolumeName(abs) + separator
	at, rest := top, strings.Split(strings.TrimPrefix(abs, top), separator)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			stops, at = append(stops, at), filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return nil, err
		}
		if info.Mode().Type() != fs.ModeSymlink {
			at = next
			continue
		}
		if stops = append(stops, next); len(stops) > linksMax {
			return nil, errLinks
		}
		to, err := os.Readlink(next)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + separator
		}
		rest = append(strings.Split(strings.TrimPrefix(to, filepath.VolumeName(to)), separator), rest...)
	}
	return append(stops, at), nil
}

// MayChange reports whether a run in a directory may write a file, or choose which file its path leads to.
func (p Policy) MayChange(path, workspace string) bool {
	_, may := p.mayChange(path, workspace)
	return may
}

// TrustsFile reports whether a file may define commands to execute: the operator keeps it where no run can
// change it, or has approved this content. The content was read before, perhaps through a link that has
// changed since, so the file at the end of the path must have this content now.
func (p Policy) TrustsFile(path, digest, workspace string) bool {
	return p.isProtected(path, digest, workspace) || openApprovals(p.StateDir).isApproved(path, digest)
}

// isProtected reports whether a content is that of a file that no run can change.
func (p Policy) isProtected(path, digest, workspace string) bool {
	place, may := p.mayChange(path, workspace)
	if may {
		return false
	}
	data, err := safefile.Read(place, scriptfile.MaxBytes) // the largest of these files
	return err == nil && agentfile.ContentDigest(data) == digest
}

// TrustsNamed is TrustsFile for a file that a request names.
func (p Policy) TrustsNamed(path, digest, workspace string) bool {
	return p.RequestsFromUser || p.TrustsFile(path, digest, workspace)
}

// TrustsScript reports whether the node may replay a script that a log, an agent file or the operator
// names.
func (p Policy) TrustsScript(place, digest string) bool { return p.TrustsNamed(place, digest, "") }

// TrustsNamedScript is TrustsScript for a script that a request names: it is not enough that no run can
// write it.
func (p Policy) TrustsNamedScript(place, digest string) bool {
	isTrusted := ContainingPlace(place, p.Places) != "" && p.isProtected(place, digest, "")
	return p.RequestsFromUser || isTrusted || openApprovals(p.StateDir).isApproved(place, digest)
}

// ReadResolved reads a file, and returns its path without links.
func ReadResolved(path string, limit int64) (place string, data []byte, err error) {
	if place, err = filepath.Abs(path); err != nil {
		return "", nil, err
	}
	if place, err = filepath.EvalSymlinks(place); err != nil {
		return "", nil, err
	}
	data, err = safefile.Read(place, limit)
	return place, data, err
}

// ResolvePath returns a path with its links resolved, as far as the path exists.
func ResolvePath(path string) string {
	real, err := filepath.EvalSymlinks(path)
	above := filepath.Dir(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || above == path {
		if err != nil {
			return path
		}
		return real
	}
	return filepath.Join(ResolvePath(above), filepath.Base(path))
}
