package supervisor_test

import (
	"fmt"
	"slices"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/internal/permission"
	"github.com/troupe-run/troupe/model"
	"github.com/troupe-run/troupe/supervisor"
)

// treeCalls are calls about which the agents of random trees are compared.
var treeCalls = []permission.Call{
	{Tool: "shell", Args: `{"command":"git log"}`},
	{Tool: "shell", Args: `{"command":"rm x"}`},
	{Tool: "read_file", Args: `{"path":"a/b"}`},
	{Tool: "write_file", Args: `{"path":"docs/x"}`},
	{Tool: "edit_file", Args: `{"path":"y"}`},
	{Tool: "http_get", Args: `{"url":"https://a.org"}`},
	{Tool: "mcp__s__t", Args: `{}`},
	{Tool: "delegate", Args: `{"agent":"x"}`},
}

// Their places in treeCalls.
const (
	gitLog = iota
	rmFile
	readFile
	writeDocs
	editFile
	httpGet
	serverTool
	delegating
)

// ruleFacts is what a person reads in a rule: the calls that it is about, and whether it is about files.
type ruleFacts struct {
	about []int
	files bool
}

// treeRules are the rules of random trees, with what they mean.
var treeRules = map[string]ruleFacts{
	"shell(git log:*)":       {about: []int{gitLog}},
	"shell(rm:*)":            {about: []int{rmFile}},
	"shell":                  {about: []int{gitLog, rmFile}},
	"read_file(./a/**)":      {about: []int{readFile}, files: true},
	"edit_file(docs/**)":     {about: []int{writeDocs}, files: true},
	"edit_file":              {about: []int{writeDocs, editFile}, files: true},
	"http_get(domain:a.org)": {about: []int{httpGet}},
	"mcp__s":                 {about: []int{serverTool}},
	"mcp__s__t":              {about: []int{serverTool}},
	"delegate(x)":            {about: []int{delegating}},
}

var treeRuleTexts = func() (texts []string) {
	for text := range treeRules {
		texts = append(texts, text)
	}
	slices.Sort(texts) // a seed draws the same rules each time
	return texts
}()

func (g treeGrower) growRules() (list []spec.PermissionRule) {
	for range g.IntN(3) {
		list = append(list, spec.PermissionRule{Text: treeRuleTexts[g.IntN(len(treeRuleTexts))], Confined: g.IntN(3) == 0})
	}
	return list
}

func (g treeGrower) growMode() spec.PermissionMode {
	return append([]spec.PermissionMode{""}, spec.PermissionModes...)[g.IntN(1+len(spec.PermissionModes))]
}

func (g treeGrower) growPermissions() *spec.Permissions {
	return &spec.Permissions{Mode: g.growMode(), Allow: g.growRules(), Ask: g.growRules(), Deny: g.growRules(),
		Yes: g.IntN(4) == 0}
}

// treeAgent is one agent of a tree, by two readings: the permissions that the supervisor has sent it, and what the
// definitions and the operator say about it.
type treeAgent struct {
	parent    spec.ID
	sent      []spec.Permissions
	decisions []permission.Decision // by what was sent
	expected  treeExpectation
}

// treeExpectation is the second reading. It shares no code with package permission and the supervisor.
type treeExpectation struct {
	permissions []spec.Permissions // the run's with the definition's, of the agent and of each one above it
	narrowings  []spec.Narrowing
}

// strictness is the place of a mode, the strictest first. It is written anew, on purpose.
func strictness(m spec.PermissionMode) int {
	switch m {
	case spec.ModePlan:
		return 0
	case spec.ModeDontAsk:
		return 1
	case spec.ModeAcceptEdits:
		return 3
	case spec.ModeBypass:
		return 4
	}
	return 2
}

// joinPermissions are the permissions of the run with those of a definition.
func joinPermissions(run, own spec.Permissions) spec.Permissions {
	mode := run.Mode
	if mode == "" || own.Mode != "" && strictness(own.Mode) < strictness(mode) {
		mode = own.Mode
	}
	return spec.Permissions{Mode: mode, Yes: run.Yes || own.Yes, Allow: slices.Concat(run.Allow, own.Allow),
		Ask: slices.Concat(run.Ask, own.Ask), Deny: slices.Concat(run.Deny, own.Deny)}
}

// accepts reports whether an operator's change makes the rights of the agent narrower.
func (e treeExpectation) accepts(n spec.Narrowing) bool {
	if n.Mode == "" {
		return len(n.Ask)+len(n.Deny) > 0
	}
	for _, p := range e.permissions {
		if strictness(n.Mode) >= strictness(p.Mode) {
			return false
		}
	}
	return !slices.ContainsFunc(e.narrowings, func(o spec.Narrowing) bool {
		return o.Mode != "" && strictness(n.Mode) >= strictness(o.Mode)
	})
}

// decide is the strictest of what all permissions and narrowings say about a call.
func (e treeExpectation) decide(call int) permission.Decision {
	strictest, nobody, most := permission.Allow, false, strictness(spec.ModeBypass)
	for _, n := range e.narrowings {
		nobody = nobody || n.Mode == spec.ModeDontAsk
		if n.Mode != "" && n.Mode != spec.ModePlan {
			most = min(most, strictness(n.Mode))
		}
	}
	for _, p := range e.permissions {
		d := decideAlone(p, min(most, strictness(p.Mode)), call)
		if d == permission.Ask && (nobody || p.Mode == spec.ModeDontAsk) {
			d = permission.Deny
		}
		strictest = max(strictest, d)
	}
	for _, n := range e.narrowings {
		d := permission.Allow
		switch {
		case concerns(n.Deny, call), n.Mode == spec.ModePlan && changesSomething(call):
			d = permission.Deny
		case (concerns(n.Ask, call) || guardsCommand(n.Ask, n.Deny, call)) && nobody:
			d = permission.Deny
		case concerns(n.Ask, call), guardsCommand(n.Ask, n.Deny, call):
			d = permission.Ask
		}
		strictest = max(strictest, d)
	}
	return strictest
}

func concerns(rules []spec.PermissionRule, call int) bool {
	return slices.ContainsFunc(rules, func(r spec.PermissionRule) bool {
		return slices.Contains(treeRules[r.Text].about, call)
	})
}

// guardsCommand reports whether a command must be asked about because a rule that asks or denies is about files.
func guardsCommand(ask, deny []spec.PermissionRule, call int) bool {
	return isCommand(call) && slices.ContainsFunc(slices.Concat(ask, deny),
		func(r spec.PermissionRule) bool { return treeRules[r.Text].files })
}

func isCommand(call int) bool { return call == gitLog || call == rmFile }

func changesSomething(call int) bool {
	return call != readFile && call != httpGet && call != delegating
}

// decideAlone is what one agent's permissions say about a call, before anybody asks whether a person can be asked. mode
// is the strictness of the mode that holds.
func decideAlone(p spec.Permissions, mode, call int) permission.Decision {
	plain := slices.DeleteFunc(slices.Clone(p.Allow),
		func(r spec.PermissionRule) bool { return isCommand(call) && r.Confined })
	switch {
	case concerns(p.Deny, call), mode == strictness(spec.ModePlan) && changesSomething(call):
		return permission.Deny
	case concerns(p.Ask, call), guardsCommand(p.Ask, p.Deny, call):
		return permission.Ask
	case mode == strictness(spec.ModeBypass), concerns(plain, call):
		return permission.Allow
	case isCommand(call) && (concerns(p.Allow, call) || p.Yes):
		return permission.AllowConfined
	case isCommand(call):
		return permission.Ask
	case p.Yes, call == readFile, call == httpGet, call == delegating:
		return permission.Allow
	case (call == writeDocs || call == editFile) && mode == strictness(spec.ModeAcceptEdits):
		return permission.Allow
	}
	return permission.Ask
}

// rightTree follows the permissions of the agents of one random tree.
type rightTree struct {
	run     supervisor.Opened
	agents  map[spec.ID]*treeAgent
	changed []spec.ID // since the last check
}

// add notes an agent that the supervisor has begun.
func (t *rightTree) add(task spec.Task) {
	a := &treeAgent{parent: task.Parent, sent: task.Permissions}
	i := slices.IndexFunc(t.run.Definitions, func(d supervisor.Definition) bool { return d.Name == task.Name })
	a.expected.permissions = []spec.Permissions{joinPermissions(*t.run.Permissions, *t.run.Definitions[i].Permissions)}
	if above := t.agents[task.Parent]; above != nil {
		a.expected.permissions = append(a.expected.permissions, above.expected.permissions...)
		a.expected.narrowings = slices.Clone(above.expected.narrowings)
	}
	t.agents[task.ID], t.changed = a, append(t.changed, task.ID)
}

// narrow takes rights from an agent and those below it: told is what the supervisor has sent for it.
func (t *rightTree) narrow(at spec.ID, n spec.Narrowing, told []supervisor.Effect) {
	if t.agents[at].expected.accepts(n) {
		for id, a := range t.agents {
			if t.isWithin(id, at) {
				a.expected.narrowings, t.changed = append(a.expected.narrowings, n), append(t.changed, id)
			}
		}
	}
	for _, e := range told {
		if tell, ok := e.(supervisor.Tell); ok {
			if f, ok := tell.Fact.(agent.PermissionsNarrowed); ok {
				t.agents[tell.To].sent = append(slices.Clip(t.agents[tell.To].sent), f.Rights.Permissions())
			}
		}
	}
}

func (t *rightTree) isWithin(id, at spec.ID) bool {
	for ; id != ""; id = t.agents[id].parent {
		if id == at {
			return true
		}
	}
	return false
}

// check compares the agents that have changed: their decisions are those that are expected, at least as strict as
// before, and at least as strict as those of their parents.
func (t *rightTree) check() error {
	for _, id := range t.changed {
		a := t.agents[id]
		set, before := permission.Compile(a.sent, "/w", nil), a.decisions
		a.decisions = make([]permission.Decision, len(treeCalls))
		for i, c := range treeCalls {
			tool := permission.Tool{Class: model.Effect}
			if !changesSomething(i) {
				tool.Class = model.Read
			}
			a.decisions[i] = set.Decide(c, tool, nil).Decision
			if want := a.expected.decide(i); a.decisions[i] != want {
				return fmt.Errorf("%s: %+v is decided as %d, and its definitions and changes say %d: %+v", id, c,
					a.decisions[i], want, a.expected)
			}
			if before != nil && a.decisions[i] < before[i] {
				return fmt.Errorf("%s: %+v is decided as %d after a change, and was as %d", id, c, a.decisions[i],
					before[i])
			}
		}
	}
	for _, id := range t.changed {
		if above := t.agents[t.agents[id].parent]; above != nil {
			for i, c := range treeCalls {
				if own := t.agents[id].decisions[i]; own < above.decisions[i] {
					return fmt.Errorf("%s: %+v is decided as %d, for its parent as %d", id, c, own, above.decisions[i])
				}
			}
		}
	}
	t.changed = nil
	return nil
}
