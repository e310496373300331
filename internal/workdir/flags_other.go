//go:build !unix

package workdir

import "os"

const directoryOnly = os.O_RDONLY
