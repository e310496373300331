//go:build !unix

package mcpclient

import "sync"

var one sync.Mutex

// lockExclusive keeps the goroutines of this process apart.
func lockExclusive(string) (free func(), err error) {
	one.Lock()
	return one.Unlock, nil
}
