// Package telemetry exports what a node's runs do as OpenTelemetry spans, by OTLP over HTTP.
//
// The exporter derives spans from events, which are a pure function of the logs, with the time stamps of the logs. It
// derives the id of a span from the run, the agent, and the reservation of a model call or the id of a tool call. So
// the agents of a run are in one trace, whichever nodes they work on, and a node that takes over a log makes the same
// spans as the node before it. See docs/telemetry.md.
package telemetry

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/clip"
	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/mailbox"
)

// Config of an Exporter. All fields but Logger are required.
type Config struct {
	Settings
	Env           func(string) string
	Node, Version string
	// Logs are read for the first entry of a run, and for what an agent did before this node had its log.
	Logs mailbox.Store
	// StateDir remembers whether the node before this one has sent all of its spans; "": the logs are shared.
	StateDir string
	// ShardHeads lists the newest entries of the logs of a shard, as Logs.Heads does of all logs.
	ShardHeads func(ctx context.Context, pool string, shard int, each func(mailbox.Head) error) error
	Mask       *redact.Masker // masks everything that leaves the process
	Logger     *slog.Logger   // default: discard
}

// Limits of an Exporter.
const (
	followedMax     = 1 << 14  // logs that are followed at once; more are read again when they go on
	waitingEventMax = 1024     // events of one log that wait until its past is read
	textBytesMax    = 8 << 10  // of a text in a span
	maskedBytesMax  = 64 << 10 // of a text that is searched for secrets before it is shortened
)

// Exporter makes and sends the spans of one node. It is safe for concurrent use, and its methods do not block.
type Exporter struct {
	cfg    Config
	target target
	queue  *spanQueue
	sender *sender
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	followed map[mailbox.Address]*followedLog // by bare address
	pasts    pastReads
}

// Stats are counts since the start of the node.
type Stats struct {
	Exported, Dropped int64
	Waiting           int
}

// Start starts an Exporter; nil, if neither the settings nor the environment name a receiver.
func Start(cfg Config) (*Exporter, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t, err := resolveTarget(cfg.Settings, cfg.Env, ofTraces)
	if err != nil || t.url == "" {
		return nil, err
	}
	x := &Exporter{cfg: cfg, target: t, followed: map[mailbox.Address]*followedLog{}}
	x.life, x.end = context.WithCancel(context.Background())
	x.queue = newSpanQueue(t.queueMax)
	x.sender = newSender(&x.cfg, t, x.queue)
	x.work.Go(func() { x.sender.run(x.life) })
	if x.markOpen() {
		x.work.Go(func() {
			x.resendRecent(func(each func(mailbox.Head) error) error { return cfg.Logs.Heads(x.life, each) })
		})
	}
	return x, nil
}

// texts is the function that makes a text fit for a span; nil: spans have no texts.
func (x *Exporter) texts() func(string) string {
	if !x.target.content {
		return nil
	}
	return func(s string) string { return clipMasked(x.cfg.Mask, s) }
}

// clipMasked masks a text before it is shortened: half a secret is not recognized.
func clipMasked(mask *redact.Masker, s string) string {
	return strings.Clone(clip.Text(mask.MaskText(clip.Prefix(s, maskedBytesMax)), textBytesMax))
}

// ShellStarted tells the exporter that this node begins to act on a log, under a lease. If the lease is another one
// than before, another node may have written to the log meanwhile: the exporter reads the log again.
func (x *Exporter) ShellStarted(at mailbox.Address, lease uint64) {
	if at.Agent() == mailbox.Super {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.followed[at.Bare()]
	if f == nil {
		f = x.follow(at)
	}
	f.at = at
	if f.lease != 0 && f.lease != lease && f.spans != nil {
		f.sentThrough, f.spans = f.spans.entry, nil
	}
	f.lease = lease
}

// follow adds a log. Beyond followedMax it forgets others, whose past is then read again.
func (x *Exporter) follow(at mailbox.Address) *followedLog {
	for known, f := range x.followed {
		if len(x.followed) < followedMax {
			break
		}
		if !f.reading {
			delete(x.followed, known)
		}
	}
	f := &followedLog{at: at}
	x.followed[at.Bare()] = f
	return f
}

// Observe reads an event of this node.
func (x *Exporter) Observe(e event.Published) {
	if d, ok := e.Data.(event.ShardMoved); ok && e.Kind == event.KindShardTaken {
		x.observeShard(d)
		return
	}
	if e.Seq == 0 {
		return
	}
	if d, ok := e.Data.(event.Result); ok {
		x.queue.add(runSpan(e, d, x.texts()))
		x.endGivenUp(e, d)
		return
	}
	if !isFollowed(e.Kind) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	at := mailbox.At(e.Run, e.Agent)
	f := x.followed[at]
	if f == nil {
		f = x.follow(at)
	}
	x.observeLog(f, e)
}

// observeLog reads an event of an agent's log.
func (x *Exporter) observeLog(f *followedLog, e event.Published) {
	switch {
	case f.spans == nil && e.Kind == event.KindAgentStarted && !f.reading && f.sentThrough == 0:
		f.spans = newLogSpans(e.Run, e.Agent, x.texts())
	case f.spans == nil:
		x.waitForPast(f, e)
		return
	case !f.spans.isNew(e):
		return
	}
	x.queue.add(f.spans.read(e)...)
	if f.spans.ended {
		delete(x.followed, f.at.Bare())
	}
}

// shardExpired is why a node takes the shard of one that has died (docs/events.md).
const shardExpired = "expired"

// observeShard sends the last spans of the logs of a shard whose node has died.
func (x *Exporter) observeShard(d event.ShardMoved) {
	if d.Why != shardExpired {
		return
	}
	x.work.Go(func() {
		x.resendRecent(func(each func(mailbox.Head) error) error { return x.cfg.ShardHeads(x.life, d.Pool, d.Shard, each) })
	})
}

// Traceparent is the trace context that the tool of a call gets: the span of the call, or of the request to its MCP
// server.
func (x *Exporter) Traceparent(t spec.Task, tool, call string, attempt int) string {
	trace := traceOf(t.Run, t.Trace)
	trace.sampled = x.target.sampler.isSampled(trace)
	if _, _, ok := mcpTool(tool); ok {
		return trace.traceparent(mcpSpanID(t.Run, string(t.ID), call, attempt))
	}
	return trace.traceparent(toolSpanID(t.Run, string(t.ID), call))
}

// Stats returns the counts.
func (x *Exporter) Stats() Stats {
	return Stats{Exported: x.queue.exported.Load(), Dropped: x.queue.dropped.Load(), Waiting: x.queue.count()}
}

// Close sends what waits, for closeMax at most.
func (x *Exporter) Close() {
	x.sender.finish()
	x.end()
	x.work.Wait()
	if x.queue.count() == 0 {
		x.markClosed()
	}
}

// openMarkName is a file in the state directory while a node may have spans that are not sent.
const openMarkName = "spans-unsent"

// markOpen marks the state directory, and reports whether the node before this one has left the mark.
func (x *Exporter) markOpen() (left bool) {
	if x.cfg.StateDir == "" {
		return false
	}
	f, err := os.OpenFile(filepath.Join(x.cfg.StateDir, openMarkName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Is(err, fs.ErrExist)
	}
	return f.Close() != nil
}

func (x *Exporter) markClosed() {
	if x.cfg.StateDir == "" {
		return
	}
	if err := os.Remove(filepath.Join(x.cfg.StateDir, openMarkName)); err != nil {
		x.cfg.Logger.Debug("the next node sends the last spans again", "error", err)
	}
}
