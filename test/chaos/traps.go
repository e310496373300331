package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/failpoint"
	"github.com/troupe-run/troupe/mailbox"
)

// inside is a place without a failpoint: the tool itself sends a signal to the node that called
// it. The effect has happened by then, and the result has not arrived.
const inside = "tool-inside"

// deaths are the places at which -points kills: around each append, each outbox message, each
// external call, and each answer to a client.
var deaths = []string{
	failpoint.ClaimBefore, failpoint.ClaimAcked,
	failpoint.OwnBefore + ".started", failpoint.OwnSent + ".started", failpoint.OwnAcked + ".started", failpoint.OwnReading + ".started", failpoint.OwnRead + ".started",
	failpoint.OwnBefore + ".replied", failpoint.OwnAcked + ".replied", failpoint.OwnRead + ".replied",
	failpoint.OwnBefore + ".returned", failpoint.OwnAcked + ".returned", failpoint.OwnReading + ".returned",
	failpoint.OwnBefore + ".checkpoint", failpoint.OwnBefore + ".closed", failpoint.OwnAcked + ".closed",
	failpoint.OutboxBefore, failpoint.OutboxSent, failpoint.OutboxAcked, failpoint.OutboxBefore + ".granted", failpoint.OutboxAcked + ".submitted", failpoint.OutboxSent + ".finish",
	failpoint.ModelBefore, failpoint.ModelAfter, failpoint.ToolBefore, inside, failpoint.ToolAfter, failpoint.CommandBefore, failpoint.CommandAfter,
}

// zombies are the places at which -zombies freezes a node, by the progress of the call: its Started
// was appended but not read back; it may begin; it has begun.
var zombies = []struct {
	name   string
	places []string
}{
	{"before Started is read back", []string{failpoint.OwnSent + ".started", failpoint.OwnReading + ".started"}},
	{"between Started and the call", []string{failpoint.OwnRead + ".started", failpoint.ToolBefore}},
	{"inside the call", []string{inside, inside, failpoint.ToolAfter}},
}

// otherPlace returns another place of the same kind.
func (b *fault) otherPlace(random *rand.Rand) string {
	for _, z := range zombies {
		if z.name == b.groupName() && b.kind == zombie {
			return z.places[random.IntN(len(z.places))]
		}
	}
	return deaths[random.IntN(len(deaths))]
}

// trapsDir returns the directory of a node's traps. Its tools find it by the id of the process.
func (s testDir) trapsDir(node string) string { return filepath.Join(s.dir, "traps", node) }

// linkTraps links the directory of a node's traps to the id of its process.
func (s testDir) linkTraps(node string, pid int) error {
	link := filepath.Join(s.dir, "traps", strconv.Itoa(pid))
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) { // of a node that died, whose id is used again
		return err
	}
	return os.Symlink(s.trapsDir(node), link)
}

// struckFrom returns the part of a tool's command line that sends a signal to the node that called
// it, if a trap is set.
func (s testDir) struckFrom() string {
	at := filepath.Join(s.dir, "traps") + "/$node/" + inside
	return fmt.Sprintf("node=%[3]s; if [ -e %[1]s ] && mv %[1]s %[1]s.taken 2>/dev/null; then echo $TROUPE_KEY > %[1]s.new; mv %[1]s.new %[1]s%[2]s; kill -$(cat %[1]s.taken) $node; fi;", at, failpoint.HitSuffix, caller)
}

// trapPatience is how long an actor may take to reach a trap.
const trapPatience = 10 * time.Second

var errNobody = errors.New("nobody came by")

// springTrap sets a trap for a node, and waits until an actor springs it. The text names
// the actor.
func (s testDir) springTrap(node, place, action string) (text string, err error) {
	if place == inside {
		action = map[string]string{failpoint.Kill: "KILL", failpoint.Stop: "STOP"}[action]
	}
	path := filepath.Join(s.trapsDir(node), place)
	if err := os.WriteFile(path+".set", []byte(action), 0o644); err != nil {
		return "", err
	}
	if err := os.Rename(path+".set", path); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), trapPatience)
	defer cancel()
	for {
		data, err := os.ReadFile(path + failpoint.HitSuffix)
		if err == nil {
			return strings.TrimSpace(string(data)), os.Remove(path + failpoint.HitSuffix)
		}
		if sleepFor(ctx, poll/5) == nil {
			continue
		}
		if os.Remove(path) == nil {
			return "", errNobody
		}
		ctx = context.Background() // an actor is there right now
	}
}

// caughtAt returns the address of the actor that sprang a trap, the call and the activation: from
// the id of an own entry, ADDRESS!KIND.CALL.….ACTIVATION, or the key of a call, ADDRESS.CALL.
func caughtAt(place, text string) (at, call, activation string) {
	if at, rest, ok := strings.Cut(text, "!"); ok {
		_, rest, _ = strings.Cut(rest, ".")
		call, _, _ = strings.Cut(rest, ".")
		// The failpoint does not decode the entry: the bytes before the run's id are the length of the
		// string.
		return string(mailbox.Address(at[max(0, strings.IndexByte(at, '.')-len(client.NewID())):]).Bare()), call, text[strings.LastIndexByte(text, '.')+1:]
	}
	if i := strings.LastIndexByte(text, '.'); i > 0 && strings.HasPrefix(place, "tool-") {
		return string(mailbox.Address(text[:i]).Bare()), text[i+1:], ""
	}
	return "", "", ""
}

// awaitClaim waits until the lease is over and another node has claimed the log of the caught
// actor.
func (n *nodes) awaitClaim(b *fault) {
	time.Sleep(b.frozen)
	if b.caught == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), runPatience/2)
	defer cancel()
	for {
		owner, err := n.t.load.readOwner(ctx, mailbox.Address(b.caught))
		if err == nil && owner != b.node {
			return
		}
		if sleepFor(ctx, 4*poll) != nil {
			n.t.found.addOf(runOf(b.caught), "%s was frozen on %s at %s, and nobody took it over in %v: %v", b.caught, b.node, b.place, runPatience/2, err)
			return
		}
	}
}

// readOwner returns the node that claimed a log last.
func (l *load) readOwner(ctx context.Context, at mailbox.Address) (node string, err error) {
	list, err := l.readLog(ctx, at)
	for _, s := range list {
		for _, f := range s.decodeFacts() {
			if r, ok := f.(agent.Resumed); ok {
				node = r.Node
			}
		}
	}
	return node, err
}
