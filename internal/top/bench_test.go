package top

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// largeTree is a screen with the tree of 10,000 agents, a hundred below each of a hundred.
func largeTree(tb testing.TB) *screen {
	s := newScreen(tb, 200, 50)
	s.press("enter")
	var list []client.Event
	for i := range 100 {
		lead := fmt.Sprintf("root-%d", i)
		list = append(list, eventOf(i, "super", event.KindAgentSpawned, map[string]any{"id": lead, "name": "lead", "parent": "root"}))
		for j := range 99 {
			id := fmt.Sprintf("%s-%d", lead, j)
			list = append(list, eventOf(i, "super", event.KindAgentSpawned, map[string]any{"id": id, "name": "worker", "parent": lead}), eventOf(i, id, event.KindTurnStarted, map[string]any{}))
		}
	}
	s.learn(EventsRead{runID, list})
	if n := len(s.m.run.tree().Agents()); n != 10_000 {
		tb.Fatalf("%d agents", n)
	}
	return s
}

// BenchmarkView draws the tree of 10,000 agents.
func BenchmarkView(b *testing.B) {
	s := largeTree(b)
	for b.Loop() {
		s.m.View()
	}
}

// BenchmarkUpdate learns one event of one of 10,000 agents.
func BenchmarkUpdate(b *testing.B) {
	s := largeTree(b)
	in := EventsRead{runID, []client.Event{eventOf(500, "root-50-50", event.KindToolStarted, map[string]any{"call": "1-0", "tool": "grep"})}}
	for b.Loop() {
		s.m.Update(in)
	}
}

// BenchmarkKey moves the selection down and up in the tree of 10,000 agents, and draws it.
func BenchmarkKey(b *testing.B) {
	s := largeTree(b)
	for b.Loop() {
		s.m.Update(Key{Name: "down", At: now})
		s.m.View()
		s.m.Update(Key{Name: "up", At: now})
		s.m.View()
	}
}

// BenchmarkTimeline draws the timeline of 10,000 agents.
func BenchmarkTimeline(b *testing.B) {
	s := largeTree(b)
	s.press("6")
	for b.Loop() {
		s.m.View()
	}
}
