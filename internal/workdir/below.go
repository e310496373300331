package workdir

import "path/filepath"

// IsBelow reports whether a path is a directory or below it, by their names alone. Nothing is below a directory without a
// name.
func IsBelow(dir, path string) bool {
	_, ok := Below(dir, path)
	return ok
}

// Below returns a path relative to a directory that it is below; of the directory itself, ".". See IsBelow.
func Below(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	if dir == "" || path == "" || err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}
