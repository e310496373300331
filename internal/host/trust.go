package host

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/internal/safefile"
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

// mayChange reports whether a run may write a file: it lies in the directory of
// this run or in a root, where that of another may be, by its path or by where
// its links lead.
func (c Config) mayChange(path, workspace string) bool {
	places := c.Roots
	if workspace != "" {
		places = append(slices.Clip(places), workspace)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	return containingPlace(path, places) != "" || containingPlace(real, places) != ""
}

// trusts reports whether a file may bring what is executed: the operator keeps it
// where no run can change it, or has approved this content.
func (c Config) trusts(path, digest, workspace string) bool {
	return !c.mayChange(path, workspace) || approvalsOf(c.StateDir).has(path, digest)
}

// trustsNamed is trusts for a file that a request names.
func (c Config) trustsNamed(path, digest, workspace string) bool {
	return c.ownHand || c.trusts(path, digest, workspace)
}

// trustsScript reports whether a script may be played that a log, an agent file or the operator names.
func (c Config) trustsScript(place, digest string) bool { return c.trustsNamed(place, digest, "") }

// trustsNamedScript is trustsScript for one that a request names: that no run can write it is not enough.
func (c Config) trustsNamedScript(place, digest string) bool {
	isKept := containingPlace(place, c.Trust) != "" && !c.mayChange(place, "")
	return c.ownHand || isKept || approvalsOf(c.StateDir).has(place, digest)
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
