//go:build !chaos || !linux

package failpoint

// Enabled reports whether this program was built with failpoints.
const Enabled = false

// At marks a place; what names the subject that reaches it.
func At(place, what string) {}

// AtEntry marks a place that an encoded log entry reaches.
func AtEntry(place string, data []byte) {}
