package supervisor_test

import "github.com/troupe-run/troupe/agent"

// live marks the answer to a delegation whose child goes on in the background.
func live(f agent.Returned) string {
	if f.Live {
		return " live"
	}
	return ""
}
