package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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
	place, caught, call, activation string
}

// nodes are the node processes.
type nodes struct {
	t  *testCluster
	mu sync.Mutex
	// list has all nodes that ever were, except those exchanged before the scenario; made is
	// how many were started.
	list []*nodeProcess
	made int
	wait sync.WaitGroup
	// place is a trap that all nodes have, also those that start later.
	place, action string
}

// nodeProcess is one node process.
type nodeProcess struct {
	name  string
	cmd   *exec.Cmd
	log   string
	http  string // the address of its HTTP server, if the scenario needs one
	ready bool   // requests are answered, and nothing was done to it
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

// startNode starts one more node and waits until it answers requests.
func (n *nodes) startNode() error {
	n.mu.Lock()
	n.made++
	name := fmt.Sprintf("n%d", n.made)
	dir := n.t.files.dir
	m := &nodeProcess{name: name, log: filepath.Join(dir, name+".log"), gone: make(chan struct{})}
	n.list = append(n.list, m)
	place, action := n.place, n.action
	n.mu.Unlock()
	home := n.t.files.emptyHome()
	if err := os.MkdirAll(n.t.files.trapsDir(name), 0o755); err != nil {
		return err
	}
	if place != "" {
		if err := os.WriteFile(filepath.Join(n.t.files.trapsDir(name), place), []byte(action), 0o644); err != nil {
			return err
		}
	}
	log, err := os.Create(m.log)
	if err != nil {
		return err
	}
	m.cmd = exec.Command(n.t.o.node, "--name", name, "--root", n.t.files.workDir(), "--trust", n.t.files.agentsDir(), "--machine", machine, "--lease-ttl", n.t.o.ttl.String())
	if n.t.o.servers == 0 { // the server in this process does not sync, and reports that
		m.cmd.Args = append(m.cmd.Args, "--durability", "lazy")
	}
	if n.t.o.watchers > 0 {
		if m.http, err = freeAddress(); err != nil {
			return errors.Join(err, log.Close())
		}
		m.cmd.Args = append(m.cmd.Args, "--http", m.http)
	}
	m.cmd.Env = append(os.Environ(), "TROUPE_HTTP_TOKEN="+httpToken, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "TROUPE_MODEL=",
		"ANTHROPIC_BASE_URL="+n.t.p.nodeURL(name), "ANTHROPIC_API_KEY=none", failpoint.DirVariable+"="+n.t.files.trapsDir(name))
	m.cmd.Env = append(m.cmd.Env, natsVariables(n.t.broker.options(bus.RoleNode, name))...)
	m.cmd.Env = append(m.cmd.Env, serviceVariables(n.t.broker.options(bus.RoleService, name))...)
	m.cmd.SysProcAttr = dieTogether()
	m.cmd.Stderr = log
	out, err := m.cmd.StdoutPipe()
	if err == nil {
		err = m.cmd.Start()
	}
	if err == nil {
		err = n.t.files.linkTraps(name, m.cmd.Process.Pid)
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
			return fmt.Errorf("%s did not start: %s", name, m.readLog())
		}
	case <-time.After(n.t.o.readyTime()):
		return fmt.Errorf("%s was not ready in %v: %s", name, n.t.o.readyTime(), m.readLog())
	}
	n.setReady(m, true)
	return nil
}

// readyTime is how long a node may take to start. Each killed leader of a stream that it opens costs it an election, so
// it may take as long as four such faults where leaders are killed.
func (o options) readyTime() time.Duration {
	if o.leaders == 0 {
		return readyPatience
	}
	return readyPatience + 4*o.every
}

// freeAddress is an address without a listener.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// httpURL is the address of the HTTP server of one node.
func (n *nodes) httpURL() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.list {
		if m.ready {
			return "http://" + m.http
		}
	}
	return "none"
}

// emptyHome is a directory without settings.
func (s testDir) emptyHome() string { return filepath.Join(s.dir, "home") }

// readLog returns what a node wrote to stderr.
func (m *nodeProcess) readLog() string {
	data, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (n *nodes) setReady(m *nodeProcess, ready bool) {
	n.mu.Lock()
	m.ready = ready
	n.mu.Unlock()
}

// pickVictim picks a healthy node, while another one is healthy too.
func (n *nodes) pickVictim(random *rand.Rand) *nodeProcess {
	for {
		var well []*nodeProcess
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

// injectFault injects a fault. Its consequences run in the background.
func (n *nodes) injectFault(m *nodeProcess, b *fault) {
	n.setReady(m, false)
	runs := n.t.load.countEnded()
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
			n.signalNode(m, syscall.SIGKILL)
		}
		say("dead")
		n.wait.Go(func() {
			<-m.gone
			n.replaceNode()
		})
	case stopped, zombie:
		if b.kind == stopped {
			n.signalNode(m, syscall.SIGSTOP)
		}
		if b.ask && b.caught != "" {
			n.t.observer.holdUser(b.caught, time.Time{})
		}
		n.wait.Go(func() {
			n.awaitClaim(b)
			n.signalNode(m, syscall.SIGCONT)
			n.t.observer.faultEnds(b)
			if b.ask && b.caught != "" {
				n.t.observer.holdUser(b.caught, time.Now().Add(evidencePatience))
			}
			say("thawed after %v", time.Since(b.at).Round(time.Millisecond))
			n.setReady(m, true)
		})
	case drained:
		n.wait.Go(func() {
			how := n.drainNode(m, b)
			n.t.observer.faultEnds(b)
			say("%s after %v", how, time.Since(b.at).Round(time.Millisecond))
			n.replaceNode()
		})
	}
}

func (n *nodes) signalNode(m *nodeProcess, s syscall.Signal) {
	if err := m.cmd.Process.Signal(s); err != nil {
		n.t.found.add("%s to %s: %v", s, m.name, err)
	}
}

func (n *nodes) replaceNode() {
	if err := n.startNode(); err != nil {
		n.t.found.add("%v", err)
	}
}

// exchangeNode stops a node in order before the scenario begins, and starts another.
func (n *nodes) exchangeNode(name string) error {
	n.mu.Lock()
	at := slices.IndexFunc(n.list, func(m *nodeProcess) bool { return m.name == name })
	n.mu.Unlock()
	if at < 0 {
		return fmt.Errorf("%s is not a node of this scenario", name)
	}
	m := n.list[at]
	n.signalNode(m, syscall.SIGTERM)
	if !m.awaitExit(drainPatience) || m.err != nil {
		return fmt.Errorf("%s did not stop in order: %s", name, m.readLog())
	}
	n.mu.Lock()
	n.list = slices.Delete(n.list, at, at+1)
	n.mu.Unlock()
	return n.startNode()
}

// drainNode stops a node in order. It must end well, and leave nothing undone.
func (n *nodes) drainNode(m *nodeProcess, b *fault) string {
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
	n.signalNode(m, syscall.SIGTERM)
	if !m.awaitExit(drainPatience) {
		n.t.found.add("%s did not stop in %v", m.name, drainPatience)
		n.signalNode(m, syscall.SIGKILL)
		<-m.gone
		return "killed"
	}
	if m.err != nil || strings.Contains(m.readLog(), "still under way") {
		n.t.found.add("%s did not stop in order: %v", m.name, m.err)
	}
	if b.ask {
		return "asked, then stopped"
	}
	return "stopped"
}

func (n *nodes) askToDrain(m *nodeProcess) (said string, err error) {
	ask := exec.Command(n.t.o.troupe, "nodes", "drain", m.name, "--wait", drainPatience.String())
	ask.Env = append(os.Environ(), "HOME="+n.t.files.emptyHome(), "XDG_CONFIG_HOME="+n.t.files.emptyHome(), "NATS_INBOX_PREFIX="+bus.InboxPrefix(bus.RoleClient))
	ask.Env = append(ask.Env, natsVariables(n.t.broker.options(bus.RoleClient, ""))...)
	out, err := ask.CombinedOutput()
	return string(out), err
}

func (m *nodeProcess) awaitExit(patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-m.gone:
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitFaults waits for the consequences of the faults.
func (n *nodes) awaitFaults() { n.wait.Wait() }

// stopAll stops all nodes in order, at once.
func (n *nodes) stopAll() error {
	for _, m := range n.list {
		if m.ready {
			n.signalNode(m, syscall.SIGTERM)
		}
	}
	var errs []error
	for _, m := range n.list {
		if m.ready && !m.awaitExit(drainPatience) {
			errs = append(errs, fmt.Errorf("%s did not stop in %v", m.name, drainPatience))
		} else if m.ready && m.err != nil {
			errs = append(errs, fmt.Errorf("%s ended with %w: %s", m.name, m.err, m.readLog()))
		}
	}
	return errors.Join(errs...)
}

// killAll kills the remaining nodes.
func (n *nodes) killAll() {
	for _, m := range n.list {
		select {
		case <-m.gone:
		default:
			_ = m.cmd.Process.Kill() // it may have ended just now
			<-m.gone
		}
	}
}
