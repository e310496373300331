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
	if err != nil && ContainingPlace(filepath.Clean(path), places) != "" {
		return "", "", refuse.Bad("name an existing one", "%s %s does not exist, or cannot be read", field, path)
	}
	if err != nil { // a client learns nothing about what is outside of its places
		return "", "", refuseOutside(field, path)
	}
	if place = ContainingPlace(real, places); place != "" {
		if info, err := os.Stat(real); field == "dir" && err == nil && !info.IsDir() {
			return "", "", refuse.Bad("name a directory", "dir %s is not a directory", path)
		}
		if info, err := os.Stat(place); err == nil && !info.IsDir() {
			place = filepath.Dir(place)
		}
		return real, place, nil
	}
	return "", "", refuseOutside(field, path)
}

// refuseOutside is the refusal of a path outside of the places. It does not depend on what is there.
func refuseOutside(field, path string) error {
	root := path
	if field != "dir" && filepath.Ext(path) != "" { // it looks like a file
		root = filepath.Dir(path)
	}
	return refuse.Forbidden("start the node with --root "+root+", or run with another --store-dir",
		"%s %s is not under a root of this node", field, path)
}

// NameablePlaces returns the places in which a request may name agent files and files of MCP
// servers.
func (p Policy) NameablePlaces() []string { return slices.Concat(p.Places, p.Roots) }
