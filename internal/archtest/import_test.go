package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestProtoactor: actors is the one package that knows the actor library, and
// of it only package actor: NATS is the network.
func TestProtoactor(t *testing.T) {
	const library = "github.com/asynkron/protoactor-go/"
	for _, f := range sources(t) {
		for p, spec := range f.imports() {
			switch {
			case !strings.HasPrefix(p, library):
			case !f.in("actors"):
				t.Errorf("%s imports %s: only actors does", f.line(spec), p)
			case p != library+"actor":
				t.Errorf("%s imports %s: of the library only package actor is used; no remote, no cluster", f.line(spec), p)
			}
		}
	}
}

// TestNATS: few packages know the broker.
func TestNATS(t *testing.T) {
	for _, f := range sources(t) {
		for p, spec := range f.imports() {
			server := strings.HasPrefix(p, "github.com/nats-io/nats-server/")
			client := strings.HasPrefix(p, "github.com/nats-io/nats.go")
			lease := f.in("internal/shard")
			switch {
			case server && !f.in("bus") && !f.test:
				t.Errorf("%s imports %s: only bus embeds the server", f.line(spec), p)
			case client && !f.test && !lease && !f.in("bus", "mailbox/jetstream", "client", "gateway", "internal/host", "internal/chaos"):
				t.Errorf("%s imports %s: only bus, mailbox/jetstream, client, gateway, internal/shard, the wiring in internal/host and what harms the servers talk to NATS", f.line(spec), p)
			}
		}
	}
}

// pure are the packages that decide, with what of ours each may import.
var pure = map[string][]string{
	"budget":     {"model"},
	"gate":       {},
	"agent":      {"budget", "internal/schema", "model"},
	"supervisor": {"agent", "budget", "model"},
}

// impure are standard packages that bring a clock, a goroutine, chance, the
// network or a log into what decides.
var impure = []string{"context", "net", "os", "sync", "math/rand", "log", "log/slog", "crypto/rand", "io", "runtime"}

// TestPure: the machines decide from their log and nothing else.
func TestPure(t *testing.T) {
	for _, f := range sources(t) {
		may, ok := pure[f.dir]
		if !ok || f.test {
			continue
		}
		for p, spec := range f.imports() {
			for _, bad := range impure {
				if p == bad || strings.HasPrefix(p, bad+"/") {
					t.Errorf("%s imports %s: %s is a value, it has no %s", f.line(spec), p, f.dir, bad)
				}
			}
			if our, ok := strings.CutPrefix(p, module); ok && !slices.Contains(may, our) {
				t.Errorf("%s imports %s: %s may import only %v", f.line(spec), our, f.dir, may)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if from, name := selected(n); from == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}, name) {
				t.Errorf("%s calls time.%s: times come in inside events, or a replay differs", f.line(n), name)
			}
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine: what decides has none", f.line(n))
			}
			return true
		})
	}
}

// layers are the folders from the ground up: a package imports only what is
// below it, or its own folder. The longest prefix counts.
var layers = []struct {
	folder string
	rank   int
}{
	{"model", 0}, {"settings", 0}, {"prompt", 0}, {"tool", 2}, {"gate", 0}, {"budget", 1}, {"agent", 2}, {"supervisor", 3},
	{"model/catalog", 2}, {"model/pick", 3}, {"model/scout", 2}, {"mailbox", 1}, {"bus", 2}, {"mailbox/jetstream", 3}, {"mailbox/memory", 3},
	{"telemetry", 4}, {"agentfile", 4}, {"hook", 4}, {"actors", 5}, {"actors/life", 4}, {"client", 6}, {"gateway", 7}, {"term", 7}, {"eval", 7},
	{"internal", 8}, {"internal/crew", 0}, {"internal/near", -1}, {"internal/safefile", -1}, {"internal/schema", 1}, {"internal/workdir", -1}, {"internal/trap", 0}, {".", 9}, {"cmd", 9}, {"examples", 9}, {"deploy", 9}, {"tools", 9}, {"test", 9},
}

func rank(dir string) (int, bool) {
	best, at := -1, 0
	for i, l := range layers {
		if (dir == l.folder || strings.HasPrefix(dir, l.folder+"/")) && len(l.folder) > at {
			best, at = i, len(l.folder)
		}
	}
	if best < 0 {
		return 0, false
	}
	return layers[best].rank, true
}

// TestLayers: imports go down: cmd, gateway, actors, supervisor, agent, budget,
// model. What is not a layer yet is named here first.
func TestLayers(t *testing.T) {
	for _, f := range sources(t) {
		own, ok := rank(f.dir)
		if !ok {
			t.Errorf("%s: the folder %s is in no layer of internal/archtest; say where it belongs", f.path, f.dir)
			continue
		}
		for p, spec := range f.imports() {
			our, ok := strings.CutPrefix(p, module)
			if !ok || f.test {
				continue
			}
			below, ok := rank(our)
			top, _, _ := strings.Cut(f.dir, "/")
			same := our == top || strings.HasPrefix(our, top+"/")
			if !ok || below >= own && !same {
				t.Errorf("%s imports %s: it is not below %s", f.line(spec), our, f.dir)
			}
		}
	}
}

// TestShellsKnowInterfaces: the shells know a mailbox and a model by their
// interfaces, so that each can be replaced.
func TestShellsKnowInterfaces(t *testing.T) {
	for _, f := range sources(t) {
		if !f.in("actors") || f.test {
			continue
		}
		for p, spec := range f.imports() {
			our, ok := strings.CutPrefix(p, module)
			if ok && (strings.HasPrefix(our, "mailbox/") || strings.HasPrefix(our, "model/")) {
				t.Errorf("%s imports %s: actors know mailboxes and models by their interfaces", f.line(spec), our)
			}
		}
	}
}
