//go:build !unix

package safefile

import "sync"

var one sync.Mutex

// LockExclusive keeps the goroutines of this process apart: other systems have no lock of files here.
func LockExclusive(string) (free func(), err error) {
	one.Lock()
	return one.Unlock, nil
}
