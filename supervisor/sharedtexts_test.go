package supervisor_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// Each run decodes its first entry out of its own log. The long texts of its definitions and tools are one copy for all
// runs that have them.
func TestRunsShareTheTextsOfTheirDefinitions(t *testing.T) {
	begin := func(run string) supervisor.State {
		opened := supervisor.Opened{Run: run, Goal: "work", Root: "a", Definitions: []supervisor.Definition{{Name: "a", System: strings.Repeat("be brief. ", 20)}},
			Tools: []model.ToolSpec{{Name: "read", Description: strings.Repeat("read. ", 20)}}}
		s, _ := supervisor.Step(supervisor.State{}, supervisor.Input{Fact: opened})
		return s
	}
	first := begin("one")
	runtime.GC()
	second := begin("two")
	a, b := first.Run, second.Run
	if unsafe.StringData(a.Definitions[0].System) != unsafe.StringData(b.Definitions[0].System) || unsafe.StringData(a.Tools[0].Description) != unsafe.StringData(b.Tools[0].Description) {
		t.Error("two runs hold two copies of one text")
	}
	runtime.KeepAlive(first)
}
