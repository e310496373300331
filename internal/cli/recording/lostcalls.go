package recording

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/runfile"
	"github.com/troupe-run/troupe/mailbox"
)

// recordingTools are the tools whose changes of files are recorded, in addition to tools that are commands
// (docs/undo.md).
var recordingTools = []string{"edit_file", "shell", "write_file"}

// begunCall is an attempt of a call that had begun, and whose result is in no log.
type begunCall struct {
	agent, call string
	attempt     int
}

// lostCalls names the calls that may have changed files without a record: an attempt has begun, and its result is in
// no log, because its process died, or because it is still at work.
func lostCalls(entries []mailbox.Message) (texts []string) {
	var begun []begunCall
	tools := slices.Clone(recordingTools)
	runfile.EachFact(entries, func(m mailbox.Message, fact agent.Fact, own bool) {
		switch f := fact.(type) {
		case agent.Submitted:
			for _, c := range f.Task.Commands {
				tools = append(tools, c.Name)
			}
		case agent.ContextSet:
			for _, c := range f.Commands {
				tools = append(tools, c.Name)
			}
		case agent.Started:
			if c := (begunCall{m.To.Agent(), f.Call, f.Attempt}); own && !slices.Contains(begun, c) {
				begun = append(begun, c)
			}
		case agent.Returned:
			if own {
				begun = slices.DeleteFunc(begun, func(c begunCall) bool { return c == begunCall{m.To.Agent(), f.Call, f.Attempt} })
			}
		}
	})
	if len(begun) == 0 {
		return nil
	}
	names := callNames(entries)
	for _, c := range begun {
		name := names[begunCall{agent: c.agent, call: c.call}]
		if name != "" && !slices.Contains(tools, name) {
			continue
		}
		texts = append(texts, fmt.Sprintf("call %s of %s (%s, attempt %d) had begun and its result is not in the log: nobody knows what it changed", c.call, c.agent, name, c.attempt))
	}
	return texts
}

// callNames are the tools of all calls, by agent and call. A call that no event names is not among them.
func callNames(entries []mailbox.Message) map[begunCall]string {
	names := map[begunCall]string{}
	for _, e := range replay.Logs(entries, replay.Options{Events: true}).Events {
		if p, ok := e.Data.(event.ToolCall); ok && e.Kind == event.KindToolProposed {
			names[begunCall{agent: e.Agent, call: p.Call}] = p.Tool
		}
	}
	return names
}
