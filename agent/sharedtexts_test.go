package agent

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/intern"
	"github.com/troupe-run/troupe/model"
)

func TestTasksOfManyRunsShareTheTextsThatTheyHaveInCommon(t *testing.T) {
	decoded := func() spec.Task { // each run reads its own log
		return spec.Task{System: strings.Repeat("be brief. ", 20), Tools: []model.ToolSpec{{Name: "read", Schema: strings.Repeat(" ", 100) + "{}"}}}
	}
	of := decoded()
	var texts intern.Texts
	a := shareTexts(of, &texts)
	runtime.GC()
	b := shareTexts(decoded(), &texts)
	if unsafe.StringData(a.System) != unsafe.StringData(b.System) || unsafe.StringData(a.Tools[0].Schema) != unsafe.StringData(b.Tools[0].Schema) {
		t.Error("two tasks hold two copies of one text")
	}
	if a.System != of.System || a.Tools[0] != of.Tools[0] {
		t.Errorf("a text changed: %+v", a)
	}
	runtime.KeepAlive(texts)
	if &a.Tools[0] == &of.Tools[0] {
		t.Error("the list of tools that was given is changed in place")
	}
}
