package top

import (
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/term"
)

// The transcript of an agent begins with the handoffs that it has made or taken, and the view of messages has them.
func TestTheTranscriptNamesHandoffs(t *testing.T) {
	run := newOpenRun("r", term.Style{})
	run.addEvents([]client.Event{
		eventOf(0, "super", event.KindAgentSpawned, map[string]any{"id": "root", "name": "triage"}),
		eventOf(100, "root", event.KindAgentHandedOff, map[string]any{"call": "1-0", "to": "root-1-0", "name": "billing"}),
		eventOf(200, "super", event.KindAgentSpawned, map[string]any{"id": "root-1-0", "name": "billing", "parent": "root"}),
	})
	for agent, want := range map[string]string{"root": "── billing (root-1-0) took over at ", "root-1-0": "── took over from triage (root) at "} {
		run.highlight(agent)
		text := strings.Join(transcriptText(&Model{run: run, width: 80}), "\n")
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", agent, want, text)
		}
	}
	if lines := run.events.lines(&Model{run: run}, isMessage); len(lines) != 1 || !strings.Contains(lines[0], "to billing") {
		t.Errorf("the messages: %q", lines)
	}
}
