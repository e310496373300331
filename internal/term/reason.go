package term

import "github.com/troupe-run/troupe/agent/spec"

// FormatReason is a stop reason as people read it: of a cancel it says what it ended. Documents in JSON have the word itself.
func FormatReason(r spec.Reason) string {
	switch r {
	case spec.AbortedStreaming:
		return "canceled (model call aborted)"
	case spec.AbortedTools:
		return "canceled (tool aborted)"
	}
	return CleanLine(string(r))
}
