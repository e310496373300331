package runspec

import (
	"encoding/json"
	"fmt"
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
	// buildFreshFor is how long a build counts for equal requests: for that long it may miss changes of the environment,
	// and agent files that were added.
	buildFreshFor  = 100 * time.Millisecond
	cachedBuildMax = 16
)

// cachedBuild is what requests that differ only in their own texts have in common. Runs share its slices and maps:
// nothing changes an Opened after its build.
type cachedBuild struct {
	began    time.Time
	opened   supervisor.Opened
	accepted client.RunAccepted
}

// buildCache holds the newest builds: a program that starts many equal runs at once builds one.
type buildCache struct {
	mu     sync.Mutex
	builds map[string]cachedBuild
}

// cacheKey returns the key of the build of a request; "": the build depends on more than the request and the settings
// of the node, for example on files that the request names.
func (b *Builder) cacheKey(r client.RunRequest) string {
	// node pools come and go, and each run has a recording of its own
	if b.cfg.Pools != nil || b.cfg.Recordings.Dir() != "" {
		return ""
	}
	if namesFiles(r) || r.Fork != "" || r.Instead != "" || len(r.Layers) > 0 || r.History != nil {
		return ""
	}
	isOwn := b.cfg.ClaudeHome != "" && b.cfg.Trust.IsOwnRequest(r)
	r.Agent = rootOf(r)
	r.RunID, r.Prompt, r.Conversation, r.Caller, r.Trace = "", "", "", "", ""
	key, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	rules, ok := b.cfg.UserRules.digest()
	if !ok {
		return ""
	}
	return fmt.Sprint(isOwn, " ", rules, " ", string(key))
}

// namesFiles reports whether a request names files or directories, whose content its build reads.
func namesFiles(r client.RunRequest) bool {
	return r.Dir != "" || r.Agents != "" || r.MCPConfig != "" || len(r.Attach) > 0 ||
		slices.Contains(orchestrator.RouteNames(), r.Agent) || slices.ContainsFunc(trust.RoutesOf(r), isScript)
}

// dependsOnFiles reports whether files decide what a run is: agent files, and scripts, which are checked at each
// build because a run may have written over them. The node's own settings may name a script, too.
func dependsOnFiles(o supervisor.Opened) bool {
	usesScript := func(models ...spec.Model) bool {
		return slices.ContainsFunc(models, func(m spec.Model) bool { return isScript(m.Name) })
	}
	if usesScript(o.Model) || usesScript(o.LoopOptions.Fallbacks...) {
		return true
	}
	return slices.ContainsFunc(o.Definitions, func(d supervisor.Definition) bool {
		return d.Source != "" || d.Model != nil && usesScript(*d.Model) || usesScript(d.LoopOptions.Fallbacks...)
	})
}

func isScript(route string) bool {
	_, ok := trust.ScriptPath(route)
	return ok
}

// get returns the fresh build of a key with the texts of a request.
func (c *buildCache) get(key string, r client.RunRequest) (o supervisor.Opened, a client.RunAccepted, ok bool) {
	c.mu.Lock()
	found, ok := c.builds[key]
	c.mu.Unlock()
	if !ok || time.Since(found.began) > buildFreshFor {
		return o, a, false
	}
	o, a = found.opened, found.accepted
	o.Run, o.Goal, o.Conversation, o.Caller, o.Trace = r.RunID, r.Prompt, r.Conversation, r.Caller, r.Trace
	a.RunID = r.RunID
	return o, a, true
}

// put keeps a build. began is when it began, so that its age covers all that it has read. A full cache is emptied:
// none of its builds counts for long.
func (c *buildCache) put(key string, began time.Time, o supervisor.Opened, a client.RunAccepted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.builds == nil || len(c.builds) >= cachedBuildMax {
		c.builds = map[string]cachedBuild{}
	}
	c.builds[key] = cachedBuild{began, o, a}
}
