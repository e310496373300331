package spec

import "strings"

// FailedMark begins the final answer of an agent that could not do its task. Prompts of built-in agents name it.
const FailedMark = "[failed]"

// CutFailedMark returns the rest of an answer that declares a failure.
func CutFailedMark(answer string) (rest string, isFailure bool) {
	rest, isFailure = strings.CutPrefix(strings.TrimSpace(answer), FailedMark)
	return strings.TrimSpace(rest), isFailure
}
