package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/failpoint"
)

// Kinds of faults.
const (
	killed  = "kill"   // SIGKILL, and another node starts
	stopped = "stop"   // SIGSTOP for longer than the TTL, then SIGCONT
	drained = "drain"  // asked to leave, or not, then SIGTERM, and another node starts
	pointed = "point"  // kill, at a named place of the code
	zombie  = "zombie" // stop, at a named place around a call, until the actor has been taken over
)

// fault is one fault of a node or server.
type fault struct {
	no     int
	kind   string
	node   string
	at     time.Time
	end    time.Time     // of a stop: when it was thawed; of a drain: when it had ended
	frozen time.Duration // how long a stop lasts
	ask    bool          // a drain begins with `troupe nodes drain`; the user waits with a zombie's question
	// place is where a trap was set, caught the actor that sprang it, in which call, and in
	// which activation, if that is known.
	place, caught, call, life string
}

// nodes are the node processes.
type nodes struct {
	t  *testCluster
	mu sync.Mutex
	// list has all nodes that ever were, except those exchanged before the scenario; made is
	// how many were started.
	list []*member
	made int
	wait sync.WaitGroup
	// place is a trap that all nodes have, also those that start later.
	place, action string
	bin           string // of those that start later; default that of the scenario
}

// member is one node process.
type member struct {
	name  string
	cmd   *exec.Cmd
	log   string
	bin   string
	ready bool // requests are answered, and nothing was done to it
	gone  chan struct{}
	err   error // of Wait, once it is gone
}

// machine is what all nodes say that they are on: runs with a directory live in its pool.
const machine = "stage"

// Patience with processes.
const (
	readyPatience = 60 * time.Second
	drainPatience = 90 * time.Second // a node gives up after 75 s by itself
	// evidencePatience is how long a patient person waits for the result of a call
	// whose node was thawed.
	evidencePatience = 30 * time.Second
)

// start starts one more node and waits until it answers requests.
func (n *nodes) start() error {
	n.mu.Lock()
	n.made++
	name := fmt.Sprintf("n%d", n.made)
	dir := n.t.files.dir
	m := &member{name: name, log: filepath.Join(dir, name+".log"), gone: make(chan struct{})}
	n.list = append(n.list, m)
	place, action, bin := n.place, n.action, cmp.Or(n.bin, n.t.o.node)
	m.bin = bin
	n.mu.Unlock()
	home := n.t.files.home()
	if err := os.MkdirAll(n.t.files.traps(name), 0o755); err != nil {
		return err
	}
	if place != "" {
		if err := os.WriteFile(filepath.Join(n.t.files.traps(name), place), []byte(action), 0o644); err != nil {
			return err
		}
	}
	log, err := os.Create(m.log)
	if err != nil {
		return err
	}
	m.cmd = exec.Command(bin, "--name", name, "--root", n.t.files.work(), "--trust", n.t.files.agents(), "--machine", machine, "--lease-ttl", n.t.o.ttl.String())
	if n.t.o.servers == 0 { // the server in this process does not sync, and reports that
		m.cmd.Args = append(m.cmd.Args, "--durability", "lazy")
	}
	m.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "TROUPE_MODEL=",
		"ANTHROPIC_BASE_URL="+n.t.p.door(name), "ANTHROPIC_API_KEY=none", failpoint.Dir+"="+n.t.files.traps(name))
	m.cmd.Env = append(m.cmd.Env, variables(n.t.broker.options(bus.RoleNode, name))...)
	m.cmd.Env = append(m.cmd.Env, doors(n.t.broker.options(bus.RoleService, name))...)
	m.cmd.SysProcAttr = tied()
	m.cmd.Stderr = log
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err == nil {
		err = n.t.files.known(name, m.cmd.Process.Pid)
	}
	if err != nil {
		close(m.gone)
		return errors.Join(err, log.Close())
	}
	ready := make(chan bool, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		ready <- strings.HasPrefix(line, "ready")
		m.err = errors.Join(m.cmd.Wait(), log.Close())
		close(m.gone)
	}()
	select {
	case ok := <-ready:
		if !ok {
			return fmt.Errorf("%s did not start: %s", name, m.said())
		}
	case <-time.After(readyPatience):
		return fmt.Errorf("%s was not ready in %v: %s", name, readyPatience, m.said())
	}
	n.set(m, true)
	return nil
}

// home is a directory without settings.
func (s testDir) home() string { return filepath.Join(s.dir, "home") }

// said returns what a node wrote to stderr.
func (m *member) said() string {
	data, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (n *nodes) set(m *member, ready bool) {
	n.mu.Lock()
	m.ready = ready
	n.mu.Unlock()
}

// victim picks a healthy node, while another one is healthy too.
func (n *nodes) victim(random *rand.Rand) *member {
	for {
		var well []*member
		n.mu.Lock()
		for _, m := range n.list {
			if m.ready {
				well = append(well, m)
			}
		}
		n.mu.Unlock()
		if len(well) > 1 {
			return well[random.IntN(len(well))]
		}
		time.Sleep(poll)
	}
}

// inject injects a fault. Its consequences run in the background.
func (n *nodes) inject(m *member, b *fault) {
	n.set(m, false)
	runs := n.t.load.ended()
	begin := func() time.Duration { return b.at.Sub(n.t.began).Round(time.Millisecond) }
	say := func(format string, args ...any) {
		at := ""
		if b.place != "" {
			at = " at " + b.place
		}
		fmt.Printf("%3d | %8v | %-6s | %-6s | %4d | %s%s\n", b.no, begin(), b.kind, b.node, runs, fmt.Sprintf(format, args...), at)
	}
	n.t.observer.faultBegins(b)
	switch b.kind {
	case killed, pointed:
		if b.kind == killed { // else it is dead already
			n.signal(m, syscall.SIGKILL)
		}
		say("dead")
		n.wait.Go(func() {
			<-m.gone
			n.replace()
		})
	case stopped, zombie:
		if b.kind == stopped {
			n.signal(m, syscall.SIGSTOP)
		}
		if b.ask && b.caught != "" {
			n.t.observer.wait(b.caught, time.Time{})
		}
		n.wait.Go(func() {
			n.freeze(b)
			n.signal(m, syscall.SIGCONT)
			n.t.observer.faultEnds(b)
			if b.ask && b.caught != "" {
				n.t.observer.wait(b.caught, time.Now().Add(evidencePatience))
			}
			say("thawed after %v", time.Since(b.at).Round(time.Millisecond))
			n.set(m, true)
		})
	case drained:
		n.wait.Go(func() {
			how := n.drain(m, b)
			n.t.observer.faultEnds(b)
			say("%s after %v", how, time.Since(b.at).Round(time.Millisecond))
			n.replace()
		})
	}
}

func (n *nodes) signal(m *member, s syscall.Signal) {
	if err := m.cmd.Process.Signal(s); err != nil {
		n.t.found.add("%s to %s: %v", s, m.name, err)
	}
}

func (n *nodes) replace() {
	if err := n.start(); err != nil {
		n.t.found.add("%v", err)
	}
}

// exchange stops a node in order before the scenario begins, and starts another.
func (n *nodes) exchange(name string) error {
	n.mu.Lock()
	at := slices.IndexFunc(n.list, func(m *member) bool { return m.name == name })
	n.mu.Unlock()
	if at < 0 {
		return fmt.Errorf("%s is not a node of this scenario", name)
	}
	m := n.list[at]
	n.signal(m, syscall.SIGTERM)
	if !m.over(drainPatience) || m.err != nil {
		return fmt.Errorf("%s did not stop in order: %s", name, m.said())
	}
	n.mu.Lock()
	n.list = slices.Delete(n.list, at, at+1)
	n.mu.Unlock()
	return n.start()
}

// drain stops a node in order. It must end well, and leave nothing undone.
func (n *nodes) drain(m *member, b *fault) string {
	if b.ask {
		out, err := n.askToDrain(m)
		// A node that has just thawed is listed again with its next heartbeat.
		for until := time.Now().Add(2 * n.t.o.ttl); err != nil && strings.Contains(out, "there is no node") && time.Now().Before(until); {
			time.Sleep(time.Second)
			out, err = n.askToDrain(m)
		}
		if err != nil {
			n.t.found.add("troupe nodes drain %s: %v: %s", m.name, err, strings.TrimSpace(out))
		}
	}
	n.signal(m, syscall.SIGTERM)
	if !m.over(drainPatience) {
		n.t.found.add("%s did not stop in %v", m.name, drainPatience)
		n.signal(m, syscall.SIGKILL)
		<-m.gone
		return "killed"
	}
	if m.err != nil || strings.Contains(m.said(), "still under way") {
		n.t.found.add("%s did not stop in order: %v", m.name, m.err)
	}
	if b.ask {
		return "asked, then stopped"
	}
	return "stopped"
}

func (n *nodes) askToDrain(m *member) (said string, err error) {
	ask := exec.Command(n.t.o.troupe, "nodes", "drain", m.name, "--wait", drainPatience.String())
	ask.Env = append(os.Environ(), "HOME="+n.t.files.home(), "XDG_CONFIG_HOME="+n.t.files.home(), "NATS_INBOX_PREFIX="+bus.InboxPrefix(bus.RoleClient))
	ask.Env = append(ask.Env, variables(n.t.broker.options(bus.RoleClient, ""))...)
	out, err := ask.CombinedOutput()
	return string(out), err
}

func (m *member) over(patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-m.gone:
		return true
	case <-ctx.Done():
		return false
	}
}

// settle waits for the consequences of the faults.
func (n *nodes) settle() { n.wait.Wait() }

// end stops all nodes in order, at once.
func (n *nodes) end() error {
	for _, m := range n.list {
		if m.ready {
			n.signal(m, syscall.SIGTERM)
		}
	}
	var errs []error
	for _, m := range n.list {
		if m.ready && !m.over(drainPatience) {
			errs = append(errs, fmt.Errorf("%s did not stop in %v", m.name, drainPatience))
		} else if m.ready && m.err != nil {
			errs = append(errs, fmt.Errorf("%s ended with %w: %s", m.name, m.err, m.said()))
		}
	}
	return errors.Join(errs...)
}

// kill kills the remaining nodes.
func (n *nodes) kill() {
	for _, m := range n.list {
		select {
		case <-m.gone:
		default:
			_ = m.cmd.Process.Kill() // it may have ended just now
			<-m.gone
		}
	}
}
