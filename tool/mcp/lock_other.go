//go:build !unix

package mcp

import "sync"

var one sync.Mutex

// exclusive keeps the goroutines of this process apart.
func exclusive(string) (free func(), err error) {
	one.Lock()
	return one.Unlock, nil
}
