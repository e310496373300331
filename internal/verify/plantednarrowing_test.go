package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// denies is a narrowing that denies a tool to an agent.
func denies(agent, tool string) map[string]any {
	return map[string]any{"a": agent, "r": map[string]any{"d": []any{[]byte(tool + "\x00set by ann")}}}
}

// narrow puts a client's narrowing into the log of the run at a place, and what the supervisor has passed on to agents after it.
func (r *runLog) narrow(at int, asked map[string]any, passed ...told) {
	r.t.Helper()
	r.changeContext(at, asked, passed...)
	r.entries[at].Items[0].Kind = "permissions_set"
	for i := range passed {
		r.entries[at+1+i].Items[0].Kind = "permissions_narrowed"
	}
}

// calledTool is the tool of the first call of a run.
func (r *runLog) calledTool() (name string) {
	r.edit("root", "replied", func(b map[string]any) {
		name = b["r"].(map[string]any)["m"].(map[string]any)["c"].([]any)[0].(map[string]any)["n"].(string)
	})
	return name
}

// startDenied lets an activation append that the first call begins, after an entry that denies its tool. The call has no
// result.
func (r *runLog) startDenied() {
	r.t.Helper()
	at, tool := r.find("root", "returned"), r.calledTool()
	r.entries[at].Items[0].Kind = "checkpoint"
	r.entries[at].Items[0].ID = strings.Replace(r.entries[at].Items[0].ID, "!returned.", "!checkpoint.", 1)
	e := r.entries[at]
	e.Items = []mailbox.Item{{Kind: "started", Body: r.body(map[string]any{"c": "1-0", "a": 1}),
		ID: fmt.Sprintf("%s!started.1-0.1.%d-%d.%s", e.to, e.Epoch.Lease, e.Epoch.Start, e.Start)}}
	r.put(at, e)
	r.narrow(at, denies("root", tool), told{"root", denies("", tool)})
}

// narrowChildren lets the children begin without a tool.
func (r *runLog) narrowChildren(tool string) {
	for _, child := range []string{"root-1-0", "root-1-1"} {
		r.edit(child, "submitted", func(body map[string]any) {
			task := body["t"].(map[string]any)
			list, _ := task["pe"].([]any)
			task["pe"] = append(list, map[string]any{"nr": true, "d": []any{[]byte(tool + "\x00set by ann")}})
		})
	}
}

var narrowingPlants = []violation{
	{"rights that are narrowed by no command", children, verify.Cause, func(r *runLog) {
		at := r.besideChildren()
		r.narrow(at, denies("root-1-0", "read"), told{"root-1-0", denies("", "read")})
		r.entries[at].Items[0].Kind = "unpark"
	}},
	{"rights of another agent than the command names", children, verify.Cause, func(r *runLog) {
		r.narrow(r.besideChildren(), denies("root-1-1", "read"), told{"root-1-0", denies("", "read")})
	}},
	{"a child that begins without what was taken from its parent", children, verify.Rights, func(r *runLog) {
		r.narrow(r.beforeChildren(), denies("root", "write"), told{"root", denies("", "write")})
	}},
	{"a call of a tool that was denied before", plain, verify.Rights, func(r *runLog) {
		at, tool := r.find("root", "returned"), r.calledTool()
		r.own(at, "started", "1-0.1", map[string]any{"c": "1-0", "a": 1})
		r.narrow(at, denies("root", tool), told{"root", denies("", tool)})
	}},
	{"a call of a tool that was denied before, and whose result is lost", plain, verify.Rights, func(r *runLog) {
		r.startDenied()
		r.message("park", map[string]any{"q": "1-0.1", "c": "1-0", "r": "resume_unsafe"})
	}},
	{"a call that was repeated after it was denied", plain, verify.Rights, func(r *runLog) {
		r.startDenied()
		r.own(r.find("root", "closed"), "started", "1-0.2", map[string]any{"c": "1-0", "a": 2})
	}},
	{"a reading call of a tool that was denied before its reply", plain, verify.Rights, func(r *runLog) {
		tool := r.calledTool()
		r.narrow(r.find("root", "replied"), denies("root", tool), told{"root", denies("", tool)})
	}},
	{"a call that the task of the agent denies", plain, verify.Rights, func(r *runLog) {
		tool := r.calledTool()
		r.root(func(task map[string]any) { task["pe"] = []any{map[string]any{"d": []any{[]byte(tool + "\x00")}}} })
	}},
	{"a child of an agent that may not delegate any more", children, verify.Rights, func(r *runLog) {
		r.narrow(r.beforeChildren(), denies("root", "delegate"), told{"root", denies("", "delegate")})
		r.narrowChildren("delegate")
	}},
}

// What operators may take from agents at work breaks no rule.
func TestNarrowingsBreakNoRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    string
		narrow func(r *runLog)
	}{
		"of the root and the agents below": {children, func(r *runLog) {
			r.narrow(r.besideChildren(), denies("", "write"), told{"root", denies("", "write")}, told{"root-1-0", denies("", "write")}, told{"root-1-1", denies("", "write")})
		}},
		"of a parent, with which its children begin": {children, func(r *runLog) {
			r.narrow(r.beforeChildren(), denies("root", "write"), told{"root", denies("", "write")})
			r.narrowChildren("write")
		}},
		"a call that was about to begin, and never did": {plain, func(r *runLog) { r.startDenied() }},
		"that the supervisor refuses":                   {children, func(r *runLog) { r.narrow(r.besideChildren(), denies("root-1-0", "write")) }},
	} {
		r := openRunLog(t, c.run)
		c.narrow(r)
		for _, f := range r.verify().Findings {
			t.Errorf("%s: %s", name, f)
		}
	}
}
