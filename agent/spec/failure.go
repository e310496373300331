package spec

import "strings"

// FailedMark begins the final answer of an agent that could not do its task. It counts only for an agent whose prompt
// names it, as those of the built-in agents do: any other answer may begin with these letters.
const FailedMark = "[failed]"

// CutFailedMark returns the rest of an answer that declares a failure.
func CutFailedMark(answer string) (rest string, isFailure bool) {
	rest, isFailure = strings.CutPrefix(strings.TrimSpace(answer), FailedMark)
	trimmed := strings.TrimSpace(rest)
	return trimmed, isFailure && (trimmed == "" || trimmed != rest && !strings.HasPrefix(rest, trimmed))
}
