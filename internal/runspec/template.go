package runspec

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/orchestrator"
	"github.com/troupe-run/troupe/internal/trust"
	"github.com/troupe-run/troupe/supervisor"
)

const (
	// templateFresh is how long a build counts for equal requests. What a build reads, such as the
	// environment and the agent files of the user, is that old at most.
	templateFresh = 100 * time.Millisecond
	templatesMax  = 16
)

// template is what requests that differ only in their own texts have in common. Runs share its
// slices and maps: nothing changes an Opened after its build.
type template struct {
	built    time.Time
	opened   supervisor.Opened
	accepted client.RunAccepted
}

// templates are the newest builds: a program that starts many equal runs at once builds one.
type templates struct {
	mu    sync.Mutex
	known map[string]template
}

// templateKey returns what selects the template of a request; "": its build depends on more than the
// request and the settings of the node, on files that it names, for example.
func (b *Builder) templateKey(r client.RunRequest) string {
	if r.Dir != "" || r.Agents != "" || r.MCPConfig != "" || len(r.Attach) > 0 || r.Fork != "" || r.History != nil || b.cfg.Pools != nil || b.cfg.Recordings.Dir() != "" ||
		slices.Contains(orchestrator.RouteNames(), r.Agent) || slices.ContainsFunc(trust.RoutesOf(r), isScript) {
		return ""
	}
	r.RunID, r.Prompt, r.Conversation, r.Caller, r.Trace = "", "", "", "", ""
	key, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	return string(key)
}

// dependsOnFiles reports whether files decide what a run is: agent files, and scripts, which are checked at each build because
// a run may have written over them. The node's own settings may name a script, too.
func dependsOnFiles(o supervisor.Opened) bool {
	plays := func(models ...spec.Model) bool {
		return slices.ContainsFunc(models, func(m spec.Model) bool { return isScript(m.Name) })
	}
	if plays(o.Model) || plays(o.LoopOptions.Fallbacks...) {
		return true
	}
	return slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool {
		return d.Source != "" || d.Model != nil && plays(*d.Model) || plays(d.LoopOptions.Fallbacks...)
	})
}

func isScript(route string) bool {
	_, ok := trust.ScriptPath(route)
	return ok
}

// find builds a run from a fresh template.
func (t *templates) find(key string, r client.RunRequest) (o supervisor.Opened, a client.RunAccepted, ok bool) {
	t.mu.Lock()
	found, ok := t.known[key]
	t.mu.Unlock()
	if !ok || time.Since(found.built) > templateFresh {
		return o, a, false
	}
	o, a = found.opened, found.accepted
	o.Run, o.Goal, o.Conversation, o.Caller, o.Trace = r.RunID, r.Prompt, r.Conversation, r.Caller, r.Trace
	a.RunID = r.RunID
	return o, a, true
}

// keep keeps a build that began at a time.
func (t *templates) keep(key string, built time.Time, o supervisor.Opened, a client.RunAccepted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= templatesMax {
		t.known = map[string]template{}
	}
	t.known[key] = template{built, o, a}
}
