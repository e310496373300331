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
	"github.com/troupe-run/troupe/internal/trap"
	"github.com/troupe-run/troupe/mailbox"
)

// inside is a place that no mark is at: the tool itself strikes the node that
// called it. The effect has happened by then, and the result has not come.
const inside = "tool-inside"

// deaths are the places at which -points kills: around each append of a log, each
// letter, each call of the world, and each answer to a client.
var deaths = []string{
	trap.ClaimBefore, trap.ClaimAcked,
	trap.OwnBefore + ".started", trap.OwnSent + ".started", trap.OwnAcked + ".started", trap.OwnReading + ".started", trap.OwnRead + ".started",
	trap.OwnBefore + ".replied", trap.OwnAcked + ".replied", trap.OwnRead + ".replied",
	trap.OwnBefore + ".returned", trap.OwnAcked + ".returned", trap.OwnReading + ".returned",
	trap.OwnBefore + ".checkpoint", trap.OwnBefore + ".closed", trap.OwnAcked + ".closed",
	trap.LetterBefore, trap.LetterSent, trap.LetterAcked, trap.LetterBefore + ".granted", trap.LetterAcked + ".submitted", trap.LetterSent + ".finish",
	trap.ModelBefore, trap.ModelAfter, trap.ToolBefore, inside, trap.ToolAfter, trap.CommandBefore, trap.CommandAfter,
}

// zombies are the places at which -zombies stops, by what has happened to the
// call: it was announced, and nobody read that; it may begin; it has begun.
var zombies = []struct {
	name   string
	places []string
}{
	{"before Started is read back", []string{trap.OwnSent + ".started", trap.OwnReading + ".started"}},
	{"between Started and the call", []string{trap.OwnRead + ".started", trap.ToolBefore}},
	{"inside the call", []string{inside, inside, trap.ToolAfter}},
}

// place is the i-th place of a kind of blow.
func (t *theatre) place(kind string, random *rand.Rand) string {
	switch kind {
	case pointed:
		return deaths[random.IntN(len(deaths))]
	case undead:
		group := zombies[t.undead%len(zombies)]
		t.undead++
		return group.places[random.IntN(len(group.places))]
	}
	return ""
}

// instead is another place of the same kind.
func (b *blow) instead(random *rand.Rand) string {
	for _, z := range zombies {
		if z.name == b.group() && b.kind == undead {
			return z.places[random.IntN(len(z.places))]
		}
	}
	return deaths[random.IntN(len(deaths))]
}

// traps is the directory of the traps of a node. Its tools find it by the id of
// the process.
func (s stage) traps(node string) string { return filepath.Join(s.dir, "traps", node) }

// known links the directory of a node's traps to the id of its process.
func (s stage) known(node string, pid int) error {
	return os.Symlink(s.traps(node), filepath.Join(s.dir, "traps", strconv.Itoa(pid)))
}

// struckFrom is the part of a tool's command line that strikes the node that
// called it, if a trap is set.
func (s stage) struckFrom() string {
	at := filepath.Join(s.dir, "traps") + "/$node/" + inside
	return fmt.Sprintf("node=%[3]s; if [ -e %[1]s ] && mv %[1]s %[1]s.taken 2>/dev/null; then echo $TROUPE_KEY > %[1]s.new; mv %[1]s.new %[1]s%[2]s; kill -$(cat %[1]s.taken) $node; fi;", at, trap.Sprung, caller)
}

// trapPatience is how long is waited until somebody comes by at a trap.
const trapPatience = 10 * time.Second

var errNobody = errors.New("nobody came by")

// lure sets a trap for a node, and waits until it has sprung. The text says who
// came by.
func (t *theatre) lure(m *member, place, action string) (text string, err error) {
	if place == inside {
		action = map[string]string{trap.Kill: "KILL", trap.Stop: "STOP"}[action]
	}
	path := filepath.Join(t.stage.traps(m.name), place)
	if err := os.WriteFile(path+".set", []byte(action), 0o644); err != nil {
		return "", err
	}
	if err := os.Rename(path+".set", path); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), trapPatience)
	defer cancel()
	for {
		data, err := os.ReadFile(path + trap.Sprung)
		if err == nil {
			return strings.TrimSpace(string(data)), os.Remove(path + trap.Sprung)
		}
		if pause(ctx, poll/5) == nil {
			continue
		}
		if os.Remove(path) == nil {
			return "", errNobody
		}
		ctx = context.Background() // somebody is coming by right now
	}
}

// caughtAt is the address of whoever sprang a trap, the call and the life: from the
// id of an own entry, ADDRESS!KIND.CALL.….LIFE, or the key of a call, ADDRESS.CALL.
func caughtAt(place, text string) (at, call, life string) {
	if at, rest, ok := strings.Cut(text, "!"); ok {
		_, rest, _ = strings.Cut(rest, ".")
		call, _, _ = strings.Cut(rest, ".")
		// An entry is not decoded where the trap is: what comes before the run's id is
		// the length of the string.
		return string(mailbox.Address(at[max(0, strings.IndexByte(at, '.')-len(client.NewID())):]).Bare()), call, text[strings.LastIndexByte(text, '.')+1:]
	}
	if i := strings.LastIndexByte(text, '.'); i > 0 && strings.HasPrefix(place, "tool-") {
		return string(mailbox.Address(text[:i]).Bare()), text[i+1:], ""
	}
	return "", "", ""
}

// trapped deals a blow at a place: it happens when the node gets there.
func (t *theatre) trapped(random *rand.Rand, b *blow) (*member, error) {
	action := trap.Kill
	if b.kind == undead {
		action = trap.Stop
	}
	for {
		m := t.nodes.victim(random)
		t.nodes.set(m, false)
		text, err := t.lure(m, b.place, action)
		if errors.Is(err, errNobody) {
			t.missed++
			t.nodes.set(m, true)
			if t.missed%len(deaths) == 0 {
				return nil, fmt.Errorf("%w at %s", err, b.place)
			}
			b.place = b.instead(random)
			continue
		}
		b.node, b.at = m.name, time.Now()
		b.caught, b.call, b.life = caughtAt(b.place, text)
		return m, err
	}
}

// freeze is over when the lease is, and somebody else has claimed the log of
// whoever was caught.
func (t *theatre) freeze(b *blow) {
	time.Sleep(b.frozen)
	if b.caught == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), runPatience/2)
	defer cancel()
	for {
		owner, err := t.load.owner(ctx, mailbox.Address(b.caught))
		if err == nil && owner != b.node {
			return
		}
		if pause(ctx, 4*poll) != nil {
			t.found.of(runOf(b.caught), "%s was frozen on %s at %s, and nobody took it over in %v: %v", b.caught, b.node, b.place, runPatience/2, err)
			return
		}
	}
}

// owner is the node that claimed a log last.
func (l *load) owner(ctx context.Context, at mailbox.Address) (node string, err error) {
	list, err := l.log(ctx, at)
	for _, s := range list {
		for _, f := range s.facts() {
			if r, ok := f.(agent.Resumed); ok {
				node = r.Node
			}
		}
	}
	return node, err
}
