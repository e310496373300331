//go:build !unix

package process

import (
	"io"
	"os"
	"time"
)

// copyWaiting copies what a pipe contains now, at most max bytes. Windows reads pipes only with a
// deadline, and a goroutine that does not run until then loses what is left.
func copyWaiting(to io.Writer, pipe *os.File, max int) {
	if pipe.SetReadDeadline(time.Now().Add(DrainGrace)) == nil {
		_, _ = io.CopyN(to, pipe, int64(max))
	}
}
