package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/troupe-run/troupe/agentfile"
	"github.com/troupe-run/troupe/internal/safefile"
	scriptfile "github.com/troupe-run/troupe/model/script"
)

// containingPlace returns the resolved path of the first place that contains real, or "".
func containingPlace(real string, places []string) string {
	for _, place := range places {
		place, err := filepath.EvalSymlinks(place)
		if err != nil {
			continue
		}
		if isBelow(place, real) || hasAbove(real, place) {
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

// mayChange reports whether a run may write a file, or choose which file its path leads to: the file, or a
// link on the way to it, lies in the directory of this run or in a root, where that of another run may be. place is
// where the path leads. A path that leads nowhere may be one that a run has just changed.
func (c Config) mayChange(path, workspace string) (place string, may bool) {
	places := c.Roots
	if workspace != "" {
		places = append(slices.Clip(places), workspace)
	}
	stops, err := stopsOf(path)
	if err != nil {
		return "", true
	}
	isIn := func(stop string) bool { return containingPlace(stop, places) != "" }
	return stops[len(stops)-1], isIn(path) || slices.ContainsFunc(stops, isIn)
}

// linksMax is how many links a path may lead through.
const linksMax = 40

var errLinks = errors.New("host: the path leads through too many links")

// stopsOf follows a path, and returns whatever decides where it leads: the place of each link, each directory
// whose parent the target of a link names by "..", and last the place of the file itself, without links.
func stopsOf(path string) (stops []string, err error) {
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

// trusts reports whether a file may bring what is executed: the operator keeps it
// where no run can change it, or has approved this content. The content was read before, perhaps through a
// link that has changed since, so the file must have this content where the path leads now.
func (c Config) trusts(path, digest, workspace string) bool {
	return c.isKept(path, digest, workspace) || approvalsOf(c.StateDir).has(path, digest)
}

// isKept reports whether a content is that of a file which no run can change.
func (c Config) isKept(path, digest, workspace string) bool {
	place, may := c.mayChange(path, workspace)
	if may {
		return false
	}
	data, err := safefile.Read(place, scriptfile.MaxBytes) // the largest of these files
	return err == nil && agentfile.Digest(data) == digest
}

// trustsNamed is trusts for a file that a request names.
func (c Config) trustsNamed(path, digest, workspace string) bool {
	return c.ownHand || c.trusts(path, digest, workspace)
}

// trustsScript reports whether a script may be played that a log, an agent file or the operator names.
func (c Config) trustsScript(place, digest string) bool { return c.trustsNamed(place, digest, "") }

// trustsNamedScript is trustsScript for one that a request names: that no run can write it is not enough.
func (c Config) trustsNamedScript(place, digest string) bool {
	isTrusted := containingPlace(place, c.Trust) != "" && c.isKept(place, digest, "")
	return c.ownHand || isTrusted || approvalsOf(c.StateDir).has(place, digest)
}

// readPlaced reads a file, and returns its place without links.
func readPlaced(path string, limit int64) (place string, data []byte, err error) {
	if place, err = filepath.Abs(path); err != nil {
		return "", nil, err
	}
	if place, err = filepath.EvalSymlinks(place); err != nil {
		return "", nil, err
	}
	data, err = safefile.Read(place, limit)
	return place, data, err
}
