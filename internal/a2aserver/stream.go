package a2aserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/answertext"
)

const (
	// aliveEvery is how often a stream without events shows that it is alive.
	aliveEvery = 15 * time.Second
	// slowReaderMax is how long a reader may take for an event; then it is disconnected.
	slowReaderMax = 10 * time.Second
	// lateEventsMax is how long a stream waits for the events of a run that has ended. They may be lost.
	lateEventsMax = time.Second
)

// taskStream streams the task of a run.
type taskStream struct {
	x            *exchange
	control      *http.ResponseController
	run, context string
	allHeard     chan struct{} // closed by the event that ends the run
	hearsLast    sync.Once

	mu    sync.Mutex
	open  bool
	early string // text that came before the stream was open
	text  answertext.Stream
	sent  strings.Builder // the text of the artifact
	err   error           // of an earlier write: the client is gone
}

func (x *exchange) newStream(run, conversation string) *taskStream {
	s := &taskStream{x: x, control: http.NewResponseController(x.w), run: run, context: cmp.Or(conversation, run), allHeard: make(chan struct{})}
	s.text.Send = s.sendText
	return s
}

// sendStreaming answers SendStreamingMessage. A client that goes away does not cancel the run: CancelTask does.
func (x *exchange) sendStreaming(r *http.Request, raw json.RawMessage) error {
	_, run, err := x.newRun(r, raw)
	if err != nil {
		return err
	}
	return x.newStream(run.RunID, run.Conversation).follow(r.Context(), func() (map[string]any, error) {
		_, err := x.cfg.Client.Run(context.WithoutCancel(r.Context()), run)
		return submittedTask(run), err
	})
}

// subscribe answers SubscribeToTask: the task as it is now, and what follows.
func (x *exchange) subscribe(ctx context.Context, raw json.RawMessage) error {
	info, err := x.findTask(ctx, raw)
	if err != nil {
		return err
	}
	if info.State == client.RunFinished {
		return refusal(codeUnsupported, "the task has ended; GetTask has its result")
	}
	return x.newStream(info.RunID, info.Conversation).follow(ctx, func() (map[string]any, error) { return taskOf(info), nil })
}

// follow begins a stream with a task, and ends it when the run has ended or waits for a person.
func (s *taskStream) follow(ctx context.Context, begin func() (map[string]any, error)) error {
	watch, err := s.x.cfg.Client.NewRunWatch(s.run)
	if err != nil {
		return err
	}
	defer watch.Close()
	stop, err := s.x.cfg.Client.WatchRun(s.run, s.hear)
	if err != nil {
		return err
	}
	defer stop()
	task, err := begin()
	if err != nil {
		return err
	}
	s.begin(task)
	ended := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { s.keepAlive(ended) })
	info, err := watch.Wait(ctx)
	if err == nil && info.State == client.RunFinished {
		select {
		case <-s.allHeard:
		case <-time.After(lateEventsMax):
		case <-ctx.Done():
		}
	}
	stop()
	close(ended)
	work.Wait()
	s.end(info, err)
	return nil
}

// keepAlive shows the client, and what is between, that the stream is alive.
func (s *taskStream) keepAlive(ended <-chan struct{}) {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			s.write(": alive\n\n")
			s.mu.Unlock()
		case <-ended:
			return
		}
	}
}

// hear handles an event of the run: the text of the root agent is sent as it comes.
func (s *taskStream) hear(e client.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Handle(e)
	if e.Kind == event.KindRunFinished {
		s.hearsLast.Do(func() { close(s.allHeard) })
	}
}

// begin sends the header, the task, and the text that came before.
func (s *taskStream) begin(task map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the events back
	s.x.w.WriteHeader(http.StatusOK)
	s.open = true
	s.result(map[string]any{"task": task})
	s.status(status(stateWorking, ""))
	if s.early != "" {
		s.sendText(s.early)
	}
}

// sendText sends a piece of text. The caller holds mu.
func (s *taskStream) sendText(text string) {
	if !s.open {
		s.early += text
		return
	}
	s.artifact(text, s.sent.Len() > 0, false)
	s.sent.WriteString(text)
}

// end sends the result, which replaces the text of all turns, and the last state.
func (s *taskStream) end(info client.RunInfo, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.x.streamed = err
		s.document(map[string]any{"jsonrpc": "2.0", "id": s.x.id, "error": explain(err)})
		return
	}
	if r := info.Result; r != nil && info.State == client.RunFinished && r.Text != s.sent.String() {
		s.artifact(r.Text, false, true)
	}
	state, words := stateOf(info)
	s.x.traceState(state)
	s.status(status(state, words))
}

func (s *taskStream) artifact(text string, more, last bool) {
	s.result(map[string]any{"artifactUpdate": map[string]any{"taskId": s.run, "contextId": s.context, "artifact": artifact(text), "append": more, "lastChunk": last}})
}

func (s *taskStream) status(now map[string]any) {
	s.result(map[string]any{"statusUpdate": map[string]any{"taskId": s.run, "contextId": s.context, "status": now}})
}

func (s *taskStream) result(of map[string]any) {
	s.document(map[string]any{"jsonrpc": "2.0", "id": s.x.id, "result": of})
}

// document sends an event. The caller holds mu.
func (s *taskStream) document(doc any) {
	if raw, err := json.Marshal(doc); err == nil { // a document of this package has JSON
		s.write("data: " + string(raw) + "\n\n")
	}
}

// write writes to the client, which has a time for it. The caller holds mu.
func (s *taskStream) write(text string) {
	if s.err != nil {
		return
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(slowReaderMax)) // a connection that cannot have one is one of a test
	if _, err := s.x.w.Write([]byte(text)); err != nil {
		s.err = fmt.Errorf("a2aserver: stream: %w", err)
		return
	}
	if err := s.control.Flush(); err != nil {
		s.err = fmt.Errorf("a2aserver: stream: %w", err)
	}
}
