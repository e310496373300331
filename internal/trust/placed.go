package trust

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-run/troupe/internal/refuse"
)

// CheckInPlaces checks that a client may name a path: it must be below one of these places. It
// also returns that place.
func (p Policy) CheckInPlaces(field, path string, places []string) (real, place string, err error) {
	if path == "" {
		return "", "", nil
	}
	if !filepath.IsAbs(path) {
		return "", "", refuse.Bad("send an absolute path", "%s %q is not absolute", field, path)
	}
	real, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", "", refuse.Bad("name an existing one", "%s: %v", field, err)
	}
	if place = ContainingPlace(real, places); place != "" {
		if info, err := os.Stat(place); err == nil && !info.IsDir() {
			place = filepath.Dir(place)
		}
		return real, place, nil
	}
	root := path
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		root = filepath.Dir(path)
	}
	return "", "", refuse.Forbidden("start the node with --root "+root+", or run with another --store-dir",
		"%s %s is not under a root of this node", field, path)
}

// NameablePlaces returns the places in which a request may name agent files and files of MCP
// servers.
func (p Policy) NameablePlaces() []string { return slices.Concat(p.Places, p.Roots) }
