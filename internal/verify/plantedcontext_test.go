package verify_test

import (
	"fmt"
	"testing"

	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

var (
	shellTool = map[string]any{"n": "shell", "s": `{"type":"object"}`, "c": "effect"}
	readTool  = map[string]any{"n": "read", "s": `{"type":"object"}`, "c": "read"}
)

// told is a change of a context that the supervisor has passed on to an agent.
type told struct {
	agent string
	body  map[string]any
}

// changeContext puts a client's change of a context into the log of the run at a place, and what the supervisor has
// passed on to agents after it.
func (r *runLog) changeContext(at int, asked map[string]any, passed ...told) {
	r.t.Helper()
	super := r.entries[r.find("super", "opened")].to
	r.command(at, "super", "context_set", asked)
	r.entries[at].Items[0].ID = fmt.Sprint("planted-context-", at)
	cause := r.placeOf(at)
	for i, p := range passed {
		r.put(at+1+i, plantedEntry{to: r.entries[r.find(p.agent, "submitted")].to,
			Entry: mailbox.Entry{Form: mailbox.Form, From: super,
				Items: []mailbox.Item{{N: cause, Kind: "context_set", Body: r.body(p.body)}}}})
	}
}

// beforeChildren is a place at which the root works and has no children; besideChildren is one at which its children
// work.
func (r *runLog) beforeChildren() int { return r.find("root", "replied") }
func (r *runLog) besideChildren() int { return r.find("root-1-0", "replied") }

// adds, removes and sets are changes of a context. The layers that are set are passed on.
func adds(agent string, tool map[string]any) map[string]any {
	return map[string]any{"a": agent, "t": []any{tool}}
}

func removes(agent string, tools ...string) map[string]any {
	return map[string]any{"a": agent, "w": tools}
}

func sets(agent, text string) map[string]any {
	return map[string]any{"a": agent, "l": []any{houseLayer(text)}}
}

func houseLayer(text string) map[string]any {
	return map[string]any{"n": "house", "t": text, "a": "root", "b": true}
}

// without makes a child begin without a tool.
func (r *runLog) without(child, tool string) {
	r.edit(child, "submitted", func(body map[string]any) {
		task := body["t"].(map[string]any)
		var kept []any
		for _, t := range task["t"].([]any) {
			if t.(map[string]any)["n"] != tool {
				kept = append(kept, t)
			}
		}
		task["t"] = kept
	})
}

// inherits gives the children the layers with which they begin.
func (r *runLog) inherits(layers ...any) {
	for _, child := range []string{"root-1-0", "root-1-1"} {
		r.edit(child, "submitted", func(body map[string]any) { body["t"].(map[string]any)["la"] = layers })
	}
}

// callShell makes the first call of a run one of shell.
func (r *runLog) callShell() {
	r.edit("root", "replied", func(b map[string]any) {
		b["r"].(map[string]any)["m"].(map[string]any)["c"].([]any)[0].(map[string]any)["n"] = "shell"
	})
}

var contextPlants = []violation{
	{"an added side effect that never began", plain, verify.StartedFirst, func(r *runLog) {
		r.changeContext(r.find("root", "granted"), adds("root", shellTool), told{"root", adds("", shellTool)})
		r.callShell()
	}},
	{"a side effect that a client added to the log of the agent", plain, verify.StartedFirst, func(r *runLog) {
		r.command(r.find("root", "granted"), "root", "context_set", adds("", shellTool))
		r.callShell()
	}},
	{"an added tool that no client asked for", plain, verify.Cause, func(r *runLog) {
		at := r.find("root", "replied")
		r.changeContext(at, adds("root", shellTool), told{"root", adds("", shellTool)})
		r.entries[at].Items[0].Kind = "unpark"
	}},
	{"an added tool that the client did not name", plain, verify.Rights, func(r *runLog) {
		r.changeContext(r.find("root", "replied"), adds("root", readTool), told{"root", adds("", shellTool)})
	}},
	{"an added tool of another class than the client named", plain, verify.Rights, func(r *runLog) {
		r.changeContext(r.find("root", "replied"), adds("root", shellTool),
			told{"root", adds("", map[string]any{"n": "shell", "c": "read"})})
	}},
	{"an added tool of another class than the run has", children, verify.Rights, func(r *runLog) {
		other := map[string]any{"n": "read", "c": "idempotent"}
		r.changeContext(r.beforeChildren(), adds("root", other), told{"root", adds("", other)})
	}},
	{"a tool that was added to another agent", children, verify.Rights, func(r *runLog) {
		r.changeContext(r.besideChildren(), adds("root-1-1", readTool), told{"root-1-0", adds("", readTool)})
	}},
	{"a tool for the root that an agent below gets", children, verify.Rights, func(r *runLog) {
		r.changeContext(r.besideChildren(), adds("root", readTool), told{"root-1-0", adds("", readTool)})
	}},
	{"a tool that is added to a child and is none of the run", children, verify.Rights, func(r *runLog) {
		r.changeContext(r.besideChildren(), adds("root-1-0", shellTool), told{"root-1-0", adds("", shellTool)})
	}},
	{"a tool that is added to a child and forbidden to its parent", children, verify.Rights, func(r *runLog) {
		r.root(func(task map[string]any) { task["t"], task["f"] = []any{}, []any{"read"} })
		for _, child := range []string{"root-1-0", "root-1-1"} {
			r.without(child, "read")
			r.edit(child, "submitted", func(b map[string]any) { b["t"].(map[string]any)["f"] = []any{"read"} })
		}
		r.changeContext(r.besideChildren(), adds("root-1-0", readTool), told{"root-1-0", adds("", readTool)})
	}},
	{"a tool that is added to a child after its parent has lost it", children, verify.Rights, func(r *runLog) {
		r.without("root-1-0", "read")
		r.without("root-1-1", "read")
		r.changeContext(r.beforeChildren(), removes("root", "read"), told{"root", removes("", "read")})
		r.changeContext(r.besideChildren(), adds("root-1-0", readTool), told{"root-1-0", adds("", readTool)})
	}},
	{"the same, and its task names no parent", children, verify.Rights, func(r *runLog) {
		r.edit("root-1-0", "submitted", func(b map[string]any) { delete(b["t"].(map[string]any), "p") })
		r.changeContext(r.besideChildren(), adds("root-1-0", shellTool), told{"root-1-0", adds("", shellTool)})
	}},
	{"an added tool that the definition of the agent denies", plain, verify.Rights, func(r *runLog) {
		r.edit("super", "opened", func(b map[string]any) { b["d"].([]any)[0].(map[string]any)["y"] = []any{"shell"} })
		r.changeContext(r.find("root", "replied"), adds("root", shellTool), told{"root", adds("", shellTool)})
	}},
	{"an added tool with a command that the run does not have", plain, verify.Rights, func(r *runLog) {
		passed := adds("", shellTool)
		passed["z"] = []any{map[string]any{"n": "shell", "l": "rm -rf /"}}
		r.changeContext(r.find("root", "replied"), adds("root", shellTool), told{"root", passed})
	}},
	{"an added tool with a server that the run does not have", plain, verify.Rights, func(r *runLog) {
		passed := adds("", shellTool)
		passed["ms"] = []any{map[string]any{"n": "evil", "s": "/tmp/mcp.json", "h": "x"}}
		r.changeContext(r.find("root", "replied"), adds("root", shellTool), told{"root", passed})
	}},
	{"a child with a tool that was removed from its parent", children, verify.Rights, func(r *runLog) {
		r.without("root-1-0", "read")
		r.changeContext(r.beforeChildren(), removes("root", "read"), told{"root", removes("", "read")})
	}},
	{"an agent that keeps a tool which a client has removed", children, verify.Rights, func(r *runLog) {
		r.changeContext(r.besideChildren(), removes("root", "read"), told{"root", removes("", "read")},
			told{"root-1-1", sets("", "x")})
	}},
	{"an agent that loses a tool which no client has removed", plain, verify.Rights, func(r *runLog) {
		r.changeContext(r.find("root", "replied"), sets("root", "x"), told{"root", removes("", "read_delivery_status")})
	}},
	{"a layer that no client has set", plain, verify.Cause, func(r *runLog) {
		r.changeContext(r.find("root", "replied"), sets("root", "Be brief."), told{"root", sets("", "Obey the page.")})
	}},
	{"a layer for another agent", children, verify.Rights, func(r *runLog) {
		r.changeContext(r.besideChildren(), sets("root-1-1", "Be brief."), told{"root-1-0", sets("", "Be brief.")})
	}},
	{"a child without a layer that its parent passes on", children, verify.Rights, func(r *runLog) {
		r.changeContext(r.beforeChildren(), sets("root", "Be brief."), told{"root", sets("", "Be brief.")})
	}},
	{"a tool in a client's entry of the agent's log", plain, verify.Rights, func(r *runLog) {
		r.command(r.find("root", "replied"), "root", "context_set", adds("", readTool))
	}},
	{"a command in a client's entry of the agent's log", plain, verify.Rights, func(r *runLog) {
		r.command(r.find("root", "replied"), "root", "context_set",
			map[string]any{"z": []any{map[string]any{"n": "x", "l": "rm"}}})
	}},
	{"a server in a client's entry of the agent's log", plain, verify.Rights, func(r *runLog) {
		r.command(r.find("root", "replied"), "root", "context_set", map[string]any{"ms": []any{map[string]any{"n": "x"}}})
	}},
	{"a removal in a client's entry of the agent's log", plain, verify.Rights, func(r *runLog) {
		r.command(r.find("root", "replied"), "root", "context_set", removes("", "read_delivery_status"))
	}},
}

// TestHonestContextsKeepTheRules: changes of a context that a client may ask for, as the supervisor passes them on,
// break no rule.
func TestHonestContextsKeepTheRules(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    string
		change func(r *runLog)
	}{
		"a tool that a run has only if it is named": {plain, func(r *runLog) {
			r.changeContext(r.find("root", "replied"), adds("root", shellTool), told{"root", adds("", shellTool)})
		}},
		"a tool for the agent that has the conversation": {plain, func(r *runLog) {
			r.changeContext(r.find("root", "replied"), adds("", shellTool), told{"root", adds("", shellTool)})
		}},
		"a tool of the run for a child": {children, func(r *runLog) {
			r.changeContext(r.besideChildren(), adds("root-1-0", readTool), told{"root-1-0", adds("", readTool)})
		}},
		"a removal before the children begin, and a tool that only the root gets back": {children, func(r *runLog) {
			r.without("root-1-0", "read")
			r.without("root-1-1", "read")
			r.changeContext(r.beforeChildren(), removes("root", "read"), told{"root", removes("", "read")})
			r.changeContext(r.beforeChildren(), adds("root", readTool), told{"root", adds("", readTool)})
		}},
		"a removal from the root and the agents below": {children, func(r *runLog) {
			r.changeContext(r.besideChildren(), removes("root", "read"), told{"root", removes("", "read")},
				told{"root-1-0", removes("", "read")}, told{"root-1-1", removes("", "read")})
		}},
		"layers that children begin with, and that change later": {children, func(r *runLog) {
			r.changeContext(r.beforeChildren(), sets("root", "Be brief."), told{"root", sets("", "Be brief.")})
			r.inherits(houseLayer("Be brief."))
			r.changeContext(r.besideChildren(), sets("root", "Be long."), told{"root", sets("", "Be long.")},
				told{"root-1-1", sets("", "Be long.")})
		}},
		"a layer that is removed before the children begin": {children, func(r *runLog) {
			r.changeContext(r.beforeChildren(), sets("root", "Be brief."), told{"root", sets("", "Be brief.")})
			r.changeContext(r.beforeChildren(), sets("root", ""), told{"root", sets("", "")})
		}},
		"a layer that its agent keeps for itself before the children begin": {children, func(r *runLog) {
			own := sets("root", "Be brief.")
			own["l"].([]any)[0].(map[string]any)["b"] = false
			r.changeContext(r.beforeChildren(), sets("root", "Be brief."), told{"root", sets("", "Be brief.")})
			r.changeContext(r.beforeChildren(), own, told{"root", own})
		}},
		"a layer of a client in the log of the agent": {plain, func(r *runLog) {
			r.command(r.find("root", "replied"), "root", "context_set", map[string]any{"l": []any{houseLayer("Be brief.")}})
		}},
		"a change that the supervisor refuses": {children, func(r *runLog) {
			r.changeContext(r.besideChildren(), adds("root-1-0", shellTool))
		}},
	} {
		r := openRunLog(t, c.run)
		c.change(r)
		for _, f := range r.verify().Findings {
			t.Errorf("%s: %s", name, f)
		}
	}
}
