//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// crowd is the size of a run with many agents.
type crowd struct {
	teams, workers int // a root delegates to teams, each team to workers, which answer at once
	watchers       int // then it delegates to agents that take about one turn a second, out of step
	moments        int // turns of a watcher
}

func (c crowd) agents() int { return 1 + c.teams*(1+c.workers) + c.watchers }

// delegationsMax is how many agents a reply of a crowd's model calls: as many calls as a reply may have.
const delegationsMax = 64

// startCrowd starts a run of many agents, which a node carries out with a scripted model.
func (s *stage) startCrowd(c crowd) string {
	s.t.Helper()
	dir := s.work // below the root of the node
	agents := map[string]string{"boss": "[]", "team": "[worker]", "worker": "[]"}
	for i := range watcherKinds {
		agents[watcherName(i)] = "[]"
	}
	agents["boss"] = "[" + strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(agents)), func(a string) bool { return a == "boss" || a == "worker" }), ", ") + "]"
	for name, delegates := range agents {
		text := fmt.Sprintf("---\nname: %s\ndescription: The %s.\nmaxTurns: 10000\nx-troupe: {delegates: %s}\n---\nYou count.\n", name, name, delegates)
		if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	raw, err := json.Marshal(map[string]any{"agents": c.replies()})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.start(s.script(string(raw)), "Count the parts.", "--agents", dir, "--agent", "boss", "--timeout", "5h", "--max-agents", "100000",
		"--max-children", "100", "--max-turns", "10000", "--max-tool-calls", "10000000", "--max-tokens", "10000000000")
}

// watcherKinds are agents whose replies take different times.
const watcherKinds = 16

func watcherName(kind int) string { return fmt.Sprint("watcher-", kind%watcherKinds) }

// replies are the turns of each agent of a crowd.
func (c crowd) replies() map[string][]map[string]any {
	say := map[string]any{"text": "counted"}
	all := map[string][]map[string]any{
		"boss":   append(delegations(c.teams, func(int) string { return "team" }), append(delegations(c.watchers, watcherName), say)...),
		"team":   append(delegations(c.workers, func(int) string { return "worker" }), say),
		"worker": {say},
	}
	for kind := range watcherKinds {
		delay := (700*time.Millisecond + time.Duration(kind)*37*time.Millisecond).String()
		for i := range c.moments {
			all[watcherName(kind)] = append(all[watcherName(kind)], map[string]any{"text": fmt.Sprint("I look at moment ", i, "."), "delay": delay, "calls": []any{map[string]any{"name": "glob", "args": map[string]string{"pattern": fmt.Sprint("*.m", i)}}}})
		}
	}
	return all
}

// delegations are the replies that call so many agents.
func delegations(count int, agent func(i int) string) (replies []map[string]any) {
	for first := 0; first < count; first += delegationsMax {
		var calls []any
		for i := first; i < min(count, first+delegationsMax); i++ {
			calls = append(calls, map[string]any{"name": "delegate", "args": map[string]string{"agent": agent(i), "task": fmt.Sprint("part ", i)}})
		}
		replies = append(replies, map[string]any{"calls": calls})
	}
	return replies
}
