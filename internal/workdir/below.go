package workdir

import "path/filepath"

// IsBelow reports whether a path is a directory or below it, by their names alone. Nothing is below a directory without a
// name.
func IsBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && path != "" && err == nil && filepath.IsLocal(rel)
}
