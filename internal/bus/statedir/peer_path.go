//go:build !linux

package statedir

// socketAddress returns an address for a path.
func socketAddress(path string) (address string, done func(), err error) {
	if len(path) > socketPathMax {
		return "", nil, errLongPath
	}
	return path, func() {}, nil
}
