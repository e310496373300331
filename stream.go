package troupe

import (
	"context"
	"errors"
	"iter"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/node"
)

// Event is something that happened in a run. Its Data has the Go type that event.RunKinds lists for its Kind, such as
// event.ToolCall. Of a kind that this version does not know, and of data that another version wrote and this one cannot
// read, it is a json.RawMessage.
type Event = event.Published

// errLoopEnded: the caller has left the loop over a stream.
var errLoopEnded = errors.New("troupe: the loop has ended")

// Stream gives the node a task and yields the events of its run, in the order of each agent's log, until the run has
// ended:
//
//	for e, err := range node.Stream(ctx, troupe.Task{Prompt: "Do we need bolts?"}) {
//		if err != nil {
//			return err
//		}
//		switch d := e.Data.(type) {
//		case event.ToolCall: // of tool.started, tool.finished and others: see e.Kind
//			fmt.Println(e.Agent, e.Kind, d.Tool)
//		case event.Result:
//			fmt.Println(d.Text)
//		}
//	}
//
// At most one error is yielded, as the last pair: the error that Run would return. A run that waits for a person does
// not end the stream: the loop sees an event of kind query.asked, and may answer it by Client().Answer. If the loop
// ends early or ctx ends, the run is canceled.
func (n *Node) Stream(ctx context.Context, t Task) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		run, err := n.openRun(ctx, &t)
		if err != nil {
			_, err = notOpened(t.RunID, err)
			yield(Event{}, err)
			return
		}
		defer run.Close()
		ended := false
		defer func() { // also if the body of the loop panics
			if !ended {
				n.leaveRun(ctx, run.ID())
			}
		}()
		const follow = true
		err = n.client.Events(ctx, run.ID(), nil, follow, func(e client.Event, _ []byte) error {
			if !yield(node.TypedEvent(e), nil) {
				return errLoopEnded
			}
			return nil
		})
		if errors.Is(err, errLoopEnded) {
			return
		}
		ended = true
		var state client.RunState
		var result *Result
		if err == nil {
			state, result, err = run.Wait(ctx)
		}
		if _, err = n.finishRun(ctx, run, state, result, err); err != nil {
			yield(Event{}, err)
		}
	}
}

// leaveRun cancels the run of a loop that was left.
func (n *Node) leaveRun(ctx context.Context, run string) {
	if _, err := n.stopRun(ctx, run, "the loop over its events was left"); err != nil {
		n.logger().Warn("cannot cancel the run of a stream that was left", "run", run, "err", err)
	}
}
