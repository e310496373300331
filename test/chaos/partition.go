package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds of cuts.
const (
	cutNode     = "cut"      // a node and all servers, both directions
	cutDeaf     = "deaf"     // a node receives nothing; what it sends arrives
	cutMute     = "mute"     // what a node sends is lost; it receives everything
	cutFlapping = "flap"     // a node is cut off and joined again, for 1 to 5 s each
	cutOne      = "one"      // a node and one server
	cutMinority = "minority" // a server that leads a stream, and the other servers
)

var cutKinds = []string{cutNode, cutDeaf, cutMute, cutFlapping, cutOne, cutMinority}

// cutWires cuts wires, each kind in turn.
func (h *serverFaults) cutWires() {
	random := rand.New(rand.NewPCG(h.t.o.seed, 2))
	for n := range h.t.o.cuts {
		time.Sleep(h.t.o.every)
		b := &fault{no: n + 1, kind: cutKinds[n%len(cutKinds)]}
		b.frozen = h.t.o.ttl + 2*time.Second + time.Duration(random.Int64N(int64(h.t.o.ttl)))
		var wires []*wire
		var victim *nodeProcess
		if b.kind == cutMinority {
			server, err := h.someLeader(random)
			if err != nil {
				h.t.found.add("who leads: %v", err)
				continue
			}
			b.node, wires = server.name, h.servers.wires.wiresAt(h.servers.wires.routes, server.name, "")
		} else {
			victim = h.t.nodes.pickVictim(random)
			h.t.nodes.setReady(victim, false)
			b.node, wires = victim.name, h.servers.wires.wiresAt(h.servers.wires.nodes, victim.name, "")
		}
		if b.kind == cutOne {
			to := h.servers.list[random.IntN(len(h.servers.list))]
			wires = h.servers.wires.wiresAt(h.servers.wires.nodes, victim.name, to.name)
		}
		b.at = time.Now()
		h.t.observer.faultBegins(b)
		h.holdCut(b, wires, random)
		h.t.observer.faultEnds(b)
		h.mu.Lock()
		h.cuts = append(h.cuts, b)
		h.mu.Unlock()
		fmt.Printf("%3d | %8v | %-6s | %-6s | %4d | mended after %v\n", b.no, b.at.Sub(h.t.began).Round(time.Millisecond), b.kind, b.node,
			h.t.load.countEnded(), b.end.Sub(b.at).Round(time.Millisecond))
		if victim != nil {
			h.t.nodes.setReady(victim, true)
		}
	}
}

// severNode cuts a node off from all servers, and reconnects it after a while.
func (h *serverFaults) severNode(m *nodeProcess, b *fault) {
	b.kind = cutNode
	h.t.nodes.setReady(m, false)
	h.t.observer.faultBegins(b)
	wires := h.servers.wires.wiresAt(h.servers.wires.nodes, m.name, "")
	h.t.nodes.wait.Go(func() {
		h.holdCut(b, wires, nil)
		h.t.observer.faultEnds(b)
		fmt.Printf("%3d | %8v | %-6s | %-6s | %4d | mended after %v\n", b.no, b.at.Sub(h.t.began).Round(time.Millisecond), b.kind, b.node,
			h.t.load.countEnded(), b.end.Sub(b.at).Round(time.Millisecond))
		h.t.nodes.setReady(m, true)
	})
}

// holdCut cuts wires for as long as a fault lasts.
func (h *serverFaults) holdCut(b *fault, wires []*wire, random *rand.Rand) {
	set := func(cut string) {
		for _, w := range wires {
			w.setCut(cut)
		}
	}
	defer set(whole)
	switch b.kind {
	case cutDeaf:
		set(deaf)
	case cutMute:
		set(mute)
	case cutFlapping:
		for until := b.at.Add(3 * b.frozen); time.Now().Before(until); {
			set(silent)
			time.Sleep(flapTime(random))
			set(whole)
			time.Sleep(flapTime(random))
		}
		return
	default:
		set(silent)
	}
	time.Sleep(b.frozen)
}

// flapTime is how long a flapping wire stays as it is.
func flapTime(random *rand.Rand) time.Duration {
	return time.Second + time.Duration(random.Int64N(int64(4*time.Second)))
}

// isolating are the kinds after which a node must stop within the TTL.
var isolating = []string{cutNode, cutDeaf, cutMute}

// startSlack is the time between the moment in which a node begins a tool and
// the one in which the tool has written that it runs, on a busy machine.
const startSlack = 2 * time.Second

// judgeFencing checks what the tools wrote when they began: a node that was cut off began
// no tool after the TTL. Its lease ends, by its own clock, a TTL after it sent the last renewal
// that was acknowledged, which was before the cut.
func (h *serverFaults) judgeFencing() {
	if len(h.cuts) == 0 {
		return
	}
	starts := h.readStarts()
	names := map[int]string{}
	for _, m := range h.t.nodes.list {
		names[m.cmd.Process.Pid] = m.name
	}
	if !slices.ContainsFunc(starts, func(s toolStart) bool { return names[s.pid] != "" }) {
		h.t.found.add("no tool of a node wrote that it began: %d tools wrote anything", len(starts))
	}
	after, late, cuts, before := []time.Duration{}, 0, 0, 0
	for _, b := range h.cuts {
		if !slices.Contains(isolating, b.kind) {
			continue
		}
		cuts++
		for _, s := range starts {
			if names[s.pid] == b.node && s.at.Before(b.at) && s.at.After(b.at.Add(-h.t.o.ttl)) {
				before++
			}
			if names[s.pid] != b.node || s.at.Before(b.at) || s.at.After(b.end) {
				continue
			}
			after = append(after, s.at.Sub(b.at))
			if s.at.Sub(b.at) > h.t.o.ttl+startSlack {
				late++
				h.t.found.add("%s was cut off for %v and began %s after %v", b.node, b.end.Sub(b.at), s.key, s.at.Sub(b.at))
			}
		}
	}
	slices.Sort(after)
	fmt.Printf("%d nodes cut off for longer than the TTL: they began %d tools in the TTL before, and %d after the cut, the last %v after it, %d later than the TTL\n",
		cuts, before, len(after), quantile(after, 1), late)
	for _, kind := range cutKinds {
		fmt.Print(h.t.observer.takeoverLine(kind, h.t.o.ttl+takeoverMore))
	}
}

// toolStart is one tool that began.
type toolStart struct {
	pid int // of the node
	at  time.Time
	key string
}

// readStarts reads the records that the tools wrote.
func (h *serverFaults) readStarts() (list []toolStart) {
	data, err := os.ReadFile(h.t.files.startsDir())
	if err != nil {
		h.t.found.add("what the tools wrote when they began: %v", err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		pid, _ := strconv.Atoi(fields[0])
		nanos, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			h.t.found.add("a tool began at %q", fields[1])
			continue
		}
		list = append(list, toolStart{pid, time.Unix(0, nanos), fields[2]})
	}
	return list
}

// startsDir is where tools write when they begin, and for which node.
func (s testDir) startsDir() string { return filepath.Join(s.dir, "begun") }

// noteCommand returns the shell command by which a tool records when it began, if a judge needs that.
func (s testDir) noteCommand() string {
	if s.o.cuts == 0 && s.o.full == "" {
		return ""
	}
	return fmt.Sprintf("echo %s $(date +%%s%%N) $TROUPE_KEY >> %s; ", caller, s.startsDir())
}
