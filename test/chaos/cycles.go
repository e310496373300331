package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/client"
)

const (
	// cycleFull is how long the disk is full in each cycle.
	cycleFull = 3 * time.Second
	// cycleGap is how long runs continue between two cycles, once a model call was seen.
	cycleGap = 2 * time.Second
	// cycleLoops is how many runs are under way at a time.
	cycleLoops = 4
	// cycleRunPatience is how long one run may take, including cycles.
	cycleRunPatience = 3 * time.Minute
	// cycleTurns is how many turns the root of a run has.
	cycleTurns = 4
)

// cyclingNode is a node with an embedded server on a small disk, and clients of it.
type cyclingNode struct {
	o     options
	p     *provider
	files testDir
	state string
	node  *exec.Cmd
	log   string

	mu     sync.Mutex
	rows   []killedRun
	bad    []string
	enough bool
}

// runDiskCycles fills the disk beneath the embedded server of a node repeatedly while runs continue.
// Nothing is restarted. (A tmpfs with open files cannot be remounted read-only, so runDiskCycles
// does not test that.)
func runDiskCycles(o options) error {
	dir, err := os.MkdirTemp("", "troupe-chaos-")
	if err != nil {
		return err
	}
	defer cleanOnSignal(dir, o.keep)()
	o.turns = cycleTurns
	c := &cyclingNode{o: o, p: newProvider(o.turns), state: filepath.Join(dir, "state"), log: filepath.Join(dir, "node.log")}
	defer c.p.Close()
	err = c.runAll(dir)
	err = errors.Join(err, endProcesses(dir), unmountAll(dir))
	if err != nil || o.keep {
		fmt.Println("kept:", dir)
		return err
	}
	return os.RemoveAll(dir)
}

func (c *cyclingNode) runAll(dir string) (err error) {
	if c.o.troupe, err = givenOrBuilt(c.o.troupe, dir, "troupe", "cli"); err != nil {
		return err
	}
	if c.o.node, err = givenOrBuilt(c.o.node, dir, "troupe-node", "node"); err != nil {
		return err
	}
	if c.files, err = newTestDir(c.o, c.p, dir); err != nil {
		return err
	}
	if err := os.MkdirAll(c.state, 0o700); err != nil {
		return err
	}
	if err := runCommand("mount", "-t", "tmpfs", "-o", fmt.Sprintf("mode=700,size=%d", diskCycles), "tmpfs", c.state); err != nil {
		return fmt.Errorf("%w: %w", errNoDisks, err)
	}
	if err := c.startNode(); err != nil {
		return err
	}
	var loops sync.WaitGroup
	for range cycleLoops {
		loops.Go(c.executeRuns)
	}
	for i := range c.o.cycles {
		if err = c.runCycle(i); err != nil {
			break
		}
	}
	c.mu.Lock()
	c.enough = true
	c.mu.Unlock()
	loops.Wait()
	return errors.Join(err, c.printVerdict())
}

// diskCycles is the size of the disk: the node refuses new runs below a tenth of it.
const diskCycles = 512 << 20

// startNode starts the node, and waits until it answers.
func (c *cyclingNode) startNode() error {
	log, err := os.Create(c.log)
	if err != nil {
		return err
	}
	c.node = exec.Command(c.o.node, "--store-dir", c.state, "--root", c.files.workDir(), "--trust", c.files.agentsDir())
	c.node.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+c.p.URL, "ANTHROPIC_API_KEY=none", "TROUPE_MODEL=", "NATS_URL=", "NATS_CONTEXT=")
	c.node.SysProcAttr, c.node.Stderr = dieTogether(), log
	out, err := c.node.StdoutPipe()
	if err == nil {
		err = c.node.Start()
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if !strings.HasPrefix(line, "ready") {
		return fmt.Errorf("the node did not start: %q %w", line, err)
	}
	return nil
}

// executeRuns executes runs one after the other, until there were enough cycles.
func (c *cyclingNode) executeRuns() {
	for {
		c.mu.Lock()
		enough := c.enough
		c.mu.Unlock()
		if enough {
			return
		}
		s := c.files
		s.run = client.NewID()
		cmd := s.newCommand("--dir", s.workDir(), "--agents", s.agentsDir(), "--agent", "boss", "--run-id", s.run,
			"-m", "anthropic/double", "--max-tokens", "2000000", "--log-patience", "2m", "count")
		ctx, cancel := context.WithTimeout(context.Background(), cycleRunPatience)
		r := killedRun{}
		r.outcome, r.problem = awaitResult(ctx, cmd)
		cancel()
		refused := r.outcome == "none" && (strings.Contains(r.problem, "is full") || strings.Contains(r.problem, "nearly full") || strings.Contains(r.problem, "read-only"))
		c.mu.Lock()
		switch {
		case refused: // it was never accepted: nothing of it may be in the ledger
			r.outcome = "refused"
			if s.effectsOf(s.run) > 0 {
				c.bad = append(c.bad, s.run+" was refused and had effects")
			}
		case r.problem != "" || r.outcome != "completed":
			c.bad = append(c.bad, fmt.Sprintf("%s ended as %s: %s", s.run, r.outcome, r.problem))
		case s.effectsOf(s.run) != c.o.turns-1+4:
			c.bad = append(c.bad, fmt.Sprintf("%s completed with %d effects of %d", s.run, s.effectsOf(s.run), c.o.turns-1+4))
		}
		c.rows = append(c.rows, r)
		c.mu.Unlock()
		if refused {
			time.Sleep(10 * poll)
		}
	}
}

// effectsOf returns the number of effects of a run in the ledger.
func (s testDir) effectsOf(run string) int {
	data, err := os.ReadFile(s.ledger)
	if err != nil {
		return 0
	}
	n := 0
	for _, key := range strings.Fields(string(data)) {
		if strings.HasPrefix(key, run+".") {
			n++
		}
	}
	return n
}

// runCycle fills the disk for a moment, and waits until model calls come again.
func (c *cyclingNode) runCycle(i int) error {
	time.Sleep(cycleGap)
	ballast := filepath.Join(c.state, "ballast")
	if err := fillDisk(ballast); err != nil {
		return errors.Join(fmt.Errorf("cycle %d: %w", i+1, err), os.Remove(ballast))
	}
	time.Sleep(cycleFull)
	if err := os.Remove(ballast); err != nil {
		return err
	}
	given, calls := time.Now(), c.p.countRequests()
	for c.p.countRequests() == calls {
		if time.Since(given) > goesPatience {
			return fmt.Errorf("cycle %d: nothing goes on %v after there is room", i+1, goesPatience)
		}
		time.Sleep(poll)
	}
	fmt.Printf("cycle %2d: full for %v, the next model call came after %v\n", i+1, cycleFull, time.Since(given).Round(10*time.Millisecond))
	return nil
}

// printVerdict prints the counts and judges them.
func (c *cyclingNode) printVerdict() error {
	ends := map[string]int{}
	for _, r := range c.rows {
		ends[r.outcome]++
	}
	lines, doubles := c.files.countLedger()
	lost := len(c.bad)
	if err := syscall.Kill(c.node.Process.Pid, 0); err != nil {
		c.bad = append(c.bad, "the node ended: "+err.Error())
	}
	data, err := os.ReadFile(c.log)
	if err != nil {
		return err
	}
	c.p.mu.Lock()
	malformed := c.p.bad
	c.p.mu.Unlock()
	fmt.Printf("%d runs %v; %d effects, %d doubles; %d runs that failed to end or lost effects; the node wrote its logs again %d times; %d malformed requests\n",
		len(c.rows), ends, lines, doubles, lost, strings.Count(string(data), "the logs can be written again"), len(malformed))
	if doubles+len(c.bad)+len(malformed) > 0 {
		return fmt.Errorf("a promise was broken: %v %v", c.bad, malformed)
	}
	if ends["completed"] == 0 {
		return errors.New("no run completed: the scenario shows nothing")
	}
	return nil
}
