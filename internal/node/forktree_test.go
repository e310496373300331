package node

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/replay"
	"github.com/troupe-run/troupe/internal/verify"
	"github.com/troupe-run/troupe/mailbox"
)

// writers is a script of a boss and workers that write files of their own in a directory that they share.
func writers(workers, turns int) string {
	var ids strings.Builder
	calls := strings.TrimSuffix(strings.Repeat("{name: delegate, args: {agent: worker, task: write}}, ", workers), ", ")
	fmt.Fprintf(&ids, "agents:\n  boss:\n    - calls: [%s]\n    - text: \"all wrote\"\nids:\n", calls)
	for w := range workers {
		fmt.Fprintf(&ids, "  root-1-%d:\n", w)
		for turn := range turns {
			fmt.Fprintf(&ids, "    - calls: [{name: write_file, args: {path: \"%d.txt\", content: \"turn %d\"}}]\n", w, turn+1)
		}
		fmt.Fprintf(&ids, "    - text: \"wrote: {{user}}\"\n")
	}
	return ids.String()
}

// writersAgents are the agent files of writers.
func writersAgents(t *testing.T) string {
	t.Helper()
	return agentFiles(t, "boss", "---\nname: boss\ndescription: Delegates.\n---\nDelegate.\n", "worker", "---\nname: worker\ndescription: Writes.\n---\nWrite.\n")
}

// hashTree hashes the names and contents below a directory.
func hashTree(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d %s\n", path, len(data), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// waitAnswering waits for the end of a run, and lets all calls run that it asks about.
func waitAnswering(t *testing.T, c *client.Client, run string) event.Result {
	t.Helper()
	for {
		info, err := c.Wait(testContext(t), run)
		if err != nil {
			t.Fatal(err)
		}
		if info.State == client.RunFinished {
			return *info.Result
		}
		questions, err := c.Questions(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range questions {
			if q.RunID != run {
				continue
			}
			if err := c.Answer(testContext(t), client.AnswerRequest{RunID: run, Agent: q.Agent, Query: q.Query, Decision: spec.Approve}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkWhole fails unless the logs of a run keep the rules and this version decides the same from them.
func checkWhole(t *testing.T, c *client.Client, run string) []mailbox.Message {
	t.Helper()
	entries, err := c.Logs(testContext(t), run)
	if err != nil {
		t.Fatal(err)
	}
	if report := verify.Logs(entries); len(report.Findings) > 0 || report.Damaged {
		t.Errorf("%s: %v", run, report.Findings)
	}
	if r := replay.Logs(entries, replay.Options{}); r.Err() != nil || r.ReadErr != nil || r.Unchecked > 0 {
		t.Errorf("%s: %v %v, %d messages without a cause", run, r.Err(), r.ReadErr, r.Unchecked)
	}
	return entries
}

// checkExactBudget fails unless what is used is what the agents used, and nothing is held.
func checkExactBudget(t *testing.T, run string, r event.Result) {
	t.Helper()
	sum := int64(0)
	for _, a := range r.Agents {
		sum += a.Tokens
	}
	if b := r.Budget; b.Reserved != 0 || b.Unknown != 0 || b.Overrun != 0 || b.Used != sum || b.Limit > 0 && b.Used > b.Limit {
		t.Errorf("%s: the agents used %d tokens, the budget says %+v", run, sum, b)
	}
}

var forksFlag = flag.Int("node.forks", 5, "points at which TestTreeOf20AgentsIsForkedAtRandomPoints forks its tree")

// TestTreeOf20AgentsIsForkedAtRandomPoints: both trees are whole, each budget is exactly what its agents used, and no write
// is shared. `make exhaustive` forks at 50 points.
//
//behaviour:shows D6
func TestTreeOf20AgentsIsForkedAtRandomPoints(t *testing.T) {
	t.Parallel()
	const workers, turns = 19, 4
	place, agents := t.TempDir(), writersAgents(t)
	dir := filepath.Join(place, "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	script := writeScript(t, writers(workers, turns))
	h := startNode(t, t.TempDir(), func(c *Config) { c.Roots = []string{place, agents} })
	c := connectClient(t, h)
	run := beginRun(t, c, client.RunRequest{Model: script, Agents: agents, Agent: "boss", Dir: dir, Yes: true, MaxChildren: workers, MaxAgents: workers + 1, MaxTokens: 10_000_000})
	original := *waitFinished(t, c, run, spec.Completed).Result
	checkExactBudget(t, run, original)
	checkWhole(t, c, run)
	before := hashTree(t, dir)
	random := rand.New(rand.NewPCG(20, 50))
	for i := range *forksFlag {
		who, turn := "root", random.IntN(3)
		if w := random.IntN(workers + 1); w < workers {
			who, turn = fmt.Sprintf("root-1-%d", w), random.IntN(turns+2)
		}
		point, to := fmt.Sprintf("%s@%s:%d", run, who, turn), filepath.Join(place, fmt.Sprintf("fork-%d", i))
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		fork := client.NewID()
		if _, err := c.Run(testContext(t), client.RunRequest{RunID: fork, Fork: point, Dir: to, Agents: agents, Model: script}); err != nil {
			t.Fatalf("%s: %v", point, err)
		}
		r := waitAnswering(t, c, fork)
		if r.Reason != spec.Completed || r.Text != original.Text || len(r.Agents) != workers+1 {
			t.Errorf("%s: %s %q, %d agents", point, r.Reason, r.Text, len(r.Agents))
		}
		checkExactBudget(t, point, r)
		for _, m := range checkWhole(t, c, fork) {
			if m.To.Run() != fork {
				t.Errorf("%s has an entry of %s", point, m.To)
			}
		}
		if hashTree(t, dir) != before {
			t.Fatalf("%s has written into the directory of the original", point)
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	checkWhole(t, c, run)
	if again := *waitFinished(t, c, run, spec.Completed).Result; again.Budget != original.Budget {
		t.Errorf("the original has %+v, and had %+v", again.Budget, original.Budget)
	}
}
