package node

import (
	"log/slog"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/metrics"
	"github.com/troupe-run/troupe/internal/term"
)

// runWatch tells an operator what the events of this node mean for its runs: a log line when a run
// begins, ends, fails, waits for a person or is taken over, and the metrics.
type runWatch struct {
	logger  *slog.Logger
	metrics *metrics.Recorder // nil: the node has none
	begun   string            // when this node started, as events show it

	mu    sync.Mutex
	known map[string]struct{} // runs that began here, or whose takeover is logged
}

// watchedRunsMax is how many runs are known at once. Beyond it a takeover may be logged again.
const watchedRunsMax = 1 << 14

func newRunWatch(logger *slog.Logger, m *metrics.Recorder) *runWatch {
	return &runWatch{logger: logger, metrics: m, begun: event.FormatStamp(time.Now().UnixMilli()), known: map[string]struct{}{}}
}

// observe handles one event of this node. It does not block.
func (w *runWatch) observe(e event.Published) {
	if w.metrics != nil {
		w.metrics.Observe(e)
	}
	switch d := e.Data.(type) {
	case event.RunStarted:
		if e.TS >= w.begun { // an older run may have begun elsewhere, and its first event is published again
			w.note(e.Run)
		}
		w.logger.Info("run started", "run", e.Run, "agent", d.Root, "model", term.ModelName(d.Model))
	case event.AgentResumed:
		if !w.note(e.Run) {
			return
		}
		w.logger.Info("run taken over", "run", e.Run, "agent", e.Agent, "phase", d.Phase)
		if w.metrics != nil {
			w.metrics.CountTakenOver()
		}
	case event.RunParked:
		w.logger.Info("run waits for a person", "run", e.Run, "questions", d.Questions)
	case event.Result:
		w.forget(e.Run)
		log, message := w.logger.Info, "run finished"
		if d.IsError {
			log, message = w.logger.Warn, "run failed"
		}
		log(message, "run", e.Run, "stop_reason", d.Reason, "turns", d.Turns, "tokens", d.Budget.Used, "cost_usd", d.CostUSD, "duration_ms", d.DurationMS, "agents", len(d.Agents))
	}
}

// note records a run, and reports whether it was unknown.
func (w *runWatch) note(run string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.known[run]; ok {
		return false
	}
	if len(w.known) >= watchedRunsMax {
		clear(w.known)
	}
	w.known[run] = struct{}{}
	return true
}

func (w *runWatch) forget(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, run)
}
