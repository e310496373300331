package spec

// FailedMark begins the final answer of an agent that could not do its task. It counts only for an agent whose prompt
// names it, as those of the built-in agents do: any other answer may begin with these letters.
const FailedMark = "[failed]"

// NothingFound is the partial result of a loop that ended before it had one.
const NothingFound = "nothing was found yet"

// RefusedMark begins the final answer of an agent that will not do its task. It counts where FailedMark counts.
const RefusedMark = "[refused]"

// Limits of the failure conditions of a run.
const (
	FailureConditionsMax     = 16
	FailureConditionBytesMax = 500
)
