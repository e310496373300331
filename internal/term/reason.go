package term

import "github.com/troupe-run/troupe/agent/spec"

// FormatReason is a stop reason as people read it: of a cancel it says where it ended the agent: at a model call,
// which may have been complete, or while tools ran. Documents in JSON have the word itself.
func FormatReason(r spec.Reason) string {
	switch r {
	case spec.AbortedStreaming:
		return "canceled (at a model call)"
	case spec.AbortedTools:
		return "canceled (tool aborted)"
	}
	return CleanLine(string(r))
}
