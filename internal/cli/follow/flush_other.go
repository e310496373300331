//go:build !linux && !darwin

package follow

import "os"

// dropTyped does nothing here: only what the process has read already is dropped.
func dropTyped(*os.File) {}
