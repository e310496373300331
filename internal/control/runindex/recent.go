package runindex

import (
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
)

const (
	// recentResultsMax is how many results of runs a node remembers, recentResultBytesMax how many
	// bytes of text they may have together.
	recentResultsMax     = 1024
	recentResultBytesMax = 4 << 20
	// agentResultBytes is what an agent counts in them.
	agentResultBytes = 512
)

// recentResults are the results of the runs that ended here last. Clients that wait for a run request
// its result the moment it ends; without recentResults each such request would replay the log of the run.
type recentResults struct {
	mu      sync.Mutex
	results map[string]recentResult
	old     []string // in the order in which they came
	bytes   int
}

// recentResult is the result of a run that has ended, and when this node learned that.
type recentResult struct {
	event.Result
	ended time.Time
}

func resultBytes(r event.Result) int {
	return len(r.Text) + len(r.Detail) + len(r.Journal) + agentResultBytes*(1+len(r.Agents))
}

func (k *recentResults) put(run string, result recentResult) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(run)
	if resultBytes(result.Result) > recentResultBytesMax {
		return
	}
	if k.results == nil {
		k.results = map[string]recentResult{}
	}
	k.results[run] = result
	k.old = append(k.old, run)
	k.bytes += resultBytes(result.Result)
	for len(k.old) > recentResultsMax || k.bytes > recentResultBytesMax {
		k.remove(k.old[0])
	}
}

// remove forgets a result. The caller holds mu.
func (k *recentResults) remove(run string) {
	result, ok := k.results[run]
	if !ok {
		return
	}
	delete(k.results, run)
	k.bytes -= resultBytes(result.Result)
	if i := slices.Index(k.old, run); i == 0 { // the oldest, which makes room
		k.old = k.old[1:]
	} else {
		k.old = slices.Delete(k.old, i, i+1)
	}
}

func (k *recentResults) forget(run string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(run)
}

func (k *recentResults) find(run string) (result recentResult, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	result, ok = k.results[run]
	return result, ok
}
