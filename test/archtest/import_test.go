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
	for _, f := range readSources(t) {
		for p, spec := range f.importSpecs() {
			switch {
			case !strings.HasPrefix(p, library):
			case !f.isBelow("actors"):
				t.Errorf("%s imports %s: only actors does", f.lineOf(spec), p)
			case p != library+"actor":
				t.Errorf("%s imports %s: of the library only package actor is used; no remote, no cluster", f.lineOf(spec), p)
			}
		}
	}
}

// TestNATS: few packages know the broker.
func TestNATS(t *testing.T) {
	for _, f := range readSources(t) {
		for p, spec := range f.importSpecs() {
			server := strings.HasPrefix(p, "github.com/nats-io/nats-server/")
			client := strings.HasPrefix(p, "github.com/nats-io/nats.go")
			lease := f.isBelow("internal/cluster")
			switch {
			case server && !f.isBelow("internal/bus/embedded", "internal/bus/bustest") && !f.test:
				t.Errorf("%s imports %s: only internal/bus/embedded embeds the server", f.lineOf(spec), p)
			case client && !f.test && !lease && !f.isBelow("internal/bus", "internal/logstore/jetstream", "client", "internal/control", "internal/agentprotocol", "internal/node", "test/chaos"):
				t.Errorf("%s imports %s: only internal/bus, internal/logstore/jetstream, client, internal/control, internal/agentprotocol, internal/cluster, the wiring in internal/node and what harms the servers talk to NATS", f.lineOf(spec), p)
			}
		}
	}
}

// linkServer are the folders whose programs or tests run a NATS server in their process. Of internal/cli only the tests of
// requests do, which send them to a node.
var linkServer = []string{"actors", "client", "cmd", "deploy", "internal/agentprotocol", "internal/bus", "internal/cli/request", "internal/cluster", "internal/control", "internal/logstore/jetstream",
	"internal/node", "test"}

// TestServerIsPassedIn: only programs, and package troupe, which is one for those who embed it, name the embedded server.
// They pass its start to the packages below. So these and their tests link no server.
func TestServerIsPassedIn(t *testing.T) {
	for _, f := range readSources(t) {
		for p, spec := range f.importSpecs() {
			p, _ = strings.CutPrefix(p, module)
			program := f.path == "troupe.go" || f.isBelow("cmd", "test", "internal/bus/bustest")
			switch {
			case p != "internal/bus/embedded" && p != "internal/bus/bustest":
			case !f.test && !program:
				t.Errorf("%s imports %s: take a localserver.StartFunc from the main function", f.lineOf(spec), p)
			case f.test && !f.isBelow(linkServer...):
				t.Errorf("%s imports %s, so that the tests of %s link a server: is one needed?", f.lineOf(spec), p, f.dir)
			}
		}
	}
}

// TestProviderSDKs: the SDKs of the model providers are judges. A binary that linked them would
// have twice the size (docs/cost.md).
func TestProviderSDKs(t *testing.T) {
	for _, f := range readSources(t) {
		for p, spec := range f.importSpecs() {
			for _, sdk := range []string{"github.com/anthropics/", "github.com/openai/", "google.golang.org/genai", "github.com/a2aproject/"} {
				if strings.HasPrefix(p, sdk) && !f.isBelow("test/judges") {
					t.Errorf("%s imports %s: only test/judges does, a module of its own", f.lineOf(spec), p)
				}
			}
		}
	}
}

// pure are the packages that decide, with what of ours each may import.
var pure = map[string][]string{
	"budget":                     {"model"},
	"internal/throttle":          {},
	"internal/clip":              {},
	"internal/decoder":           {},
	"internal/intern":            {"model"},
	"internal/toolname":          {},
	"internal/lane":              {"agent/spec"},
	"internal/schedule":          {"internal/clip", "mailbox", "internal/bus/names"},
	"internal/permission/rule":   {"internal/lazyregexp"},
	"internal/permission/person": {},
	"internal/permission":        {"agent/spec", "model", "internal/permission/rule", "internal/toolname"},
	"agent/spec":                 {"budget", "internal/toolname", "model"},
	"internal/loopoptions":       {"agent/spec", "internal/schema"},
	"agent/event":                {"agent/spec", "budget", "model"},
	"internal/message":           {"internal/clip", "model"},
	"internal/estimate":          {"budget", "model"},
	"internal/failure":           {"agent/spec"},
	"internal/namedlimit":        {"agent/spec"},
	"internal/promptlayer":       {"agent/spec"},
	"agent/history":              {"agent/spec", "internal/clip", "internal/message", "model"},
	"agent":                      {"agent/event", "agent/history", "agent/spec", "budget", "internal/clip", "internal/decoder", "internal/estimate", "internal/failure", "internal/intern", "internal/lazyregexp", "internal/message", "internal/permission", "internal/permission/person", "internal/promptlayer", "internal/schema", "internal/toolname", "model"},
	"supervisor":                 {"agent", "agent/event", "agent/spec", "budget", "internal/clip", "internal/decoder", "internal/intern", "internal/permission", "internal/promptlayer", "internal/toolname", "model"},
	"internal/activation":        {"agent", "agent/event", "agent/spec", "mailbox", "model", "supervisor"},
	"internal/verify":            {"mailbox", "internal/permission/person"}, // it judges the others, so it shares nothing with them but who is a person
	"internal/top":               {"agent/event", "agent/spec", "budget", "client", "internal/amount", "internal/clip", "internal/compare", "internal/term", "mailbox", "model"},
	"internal/replay":            {"agent", "agent/event", "agent/spec", "internal/activation", "internal/clip", "mailbox", "supervisor"},
}

// impure are standard packages that bring a clock, a goroutine, chance, the
// network or a log into what decides.
var impure = []string{"context", "net", "os", "sync", "math/rand", "log", "log/slog", "crypto/rand", "io", "runtime"}

// TestPure: the machines decide from their log and nothing else.
func TestPure(t *testing.T) {
	for _, f := range readSources(t) {
		may, ok := pure[f.dir]
		if !ok || f.test {
			continue
		}
		for p, spec := range f.importSpecs() {
			for _, bad := range impure {
				if p == bad || strings.HasPrefix(p, bad+"/") {
					t.Errorf("%s imports %s: %s is a value, it has no %s", f.lineOf(spec), p, f.dir, bad)
				}
			}
			if our, ok := strings.CutPrefix(p, module); ok && !slices.Contains(may, our) {
				t.Errorf("%s imports %s: %s may import only %v", f.lineOf(spec), our, f.dir, may)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if from, name := selectorParts(n); from == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}, name) {
				t.Errorf("%s calls time.%s: times come in inside events, or a replay differs", f.lineOf(n), name)
			}
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine: what decides has none", f.lineOf(n))
			}
			return true
		})
	}
}

// layers are the folders from the ground up: a package imports only what lies in
// a lower layer, without exceptions for its own folder. The longest prefix counts.
var layers = [][]string{
	{"internal/lazyregexp", "internal/workdir", "internal/firstcollection"},
	{"internal/process/keeper", "internal/safefile", "internal/ui"},
	{"model", "mailbox", "internal/clip", "internal/decoder", "internal/dispatcher", "internal/failpoint", "internal/jsonlog", "internal/multimatch", "internal/pidregistry", "internal/process", "internal/prompt",
		"internal/bus/statedir", "internal/amount", "internal/suggest", "internal/throttle", "internal/toolname", "internal/permission/rule"},
	{"budget", "internal/intern", "internal/message", "internal/a2aclient", "internal/node/killable", "mailbox/memory", "model/script", "internal/sandbox", "internal/modelhttp", "internal/orchestrator",
		"internal/redact", "internal/schema", "internal/bus/names"},
	{"agent/spec", "internal/estimate"},
	{"internal/namedlimit", "internal/loopoptions"},
	{"agent/event", "agent/history", "internal/config", "internal/failure", "internal/promptlayer", "internal/filechange", "internal/lane", "internal/permission", "internal/schedule"},
	{"agent", "tool", "internal/assistant", "internal/guardrail", "internal/bus", "internal/metrics", "internal/verify", "model/anthropic", "internal/cassette", "model/gemini", "model/openai",
		"internal/investigator", "internal/provider/catalog"},
	{"internal/agentmemory", "internal/bus/localserver", "internal/toolset/command"},
	{"supervisor", "internal/logstore/jetstream", "internal/logstore/local", "internal/bus/embedded", "internal/cluster/shard", "internal/toolset/builtin", "internal/toolset/readresult", "internal/toolset/shell", "internal/toolset/skill", "internal/toolset/web", "internal/config/agentfile", "internal/hook", "internal/provider"},
	{"internal/activation", "internal/bus/bustest", "internal/mcpclient", "internal/policy"},
	{"actors", "client", "internal/replay", "internal/runfile", "internal/telemetry"},
	{"internal/refuse", "internal/control/bounds", "internal/control/fairqueue", "internal/control/workgroup"},
	{"internal/control/buildslots"},
	{"internal/control/runevent", "internal/control/runlog", "internal/control/runindex"},
	{"internal/control/retention", "internal/control/runimport", "internal/control/runview", "internal/control/schedules"},
	{"client/audit", "client/report", "internal/answertext", "internal/abandon", "internal/approval", "internal/control", "internal/eval", "internal/term"},
	{"internal/a2aserver", "internal/compare", "internal/mcpserver"},
	{"internal/fixture", "internal/httpapi", "internal/top", "internal/trust"},
	{"internal/routes", "internal/workspace"},
	{"internal/toolset"},
	{"internal/runspec", "internal/cluster"},
	{"internal/agentprotocol"},
	{"internal/node"},
	{"internal/cli/exit", "internal/cli/reference"},
	{"internal/cli/command", "internal/cli/console", "internal/cli/interrupt"},
	{"internal/cli/session"},
	{"internal/cli/request"},
	{"internal/cli/recording", "internal/cli/schedules"},
	{"internal/cli/agents", "internal/cli/control", "internal/cli/conversations", "internal/cli/evals", "internal/cli/follow", "internal/cli/memory", "internal/cli/models", "internal/cli/nodes", "internal/cli/page", "internal/cli/policies", "internal/cli/serve"},
	{"internal/cli/runs"},
	{"internal/cli/completion", "internal/cli/config", "internal/cli/doctor", "internal/cli/rulefiles", "internal/cli/run", "internal/cli/screen", "internal/cli/tools"},
	{"internal/cli"},
	{".", "cmd", "deploy"},
	{"internal/test", "troupetest"},
	{"build", "examples", "test"},
}

// layerOf returns the layer of a folder by its longest prefix.
func layerOf(dir string) (layer int, ok bool) {
	longest := -1
	for i, folders := range layers {
		for _, folder := range folders {
			if (dir == folder || strings.HasPrefix(dir, folder+"/")) && len(folder) > longest {
				layer, longest = i, len(folder)
			}
		}
	}
	return layer, longest >= 0
}

// TestLayers: imports go down. A folder in no layer is an error, so a new package
// says where it belongs.
func TestLayers(t *testing.T) {
	for _, f := range readSources(t) {
		own, ok := layerOf(f.dir)
		if !ok {
			t.Errorf("%s: the folder %s is in no layer of test/archtest; say where it belongs", f.path, f.dir)
			continue
		}
		for p, spec := range f.importSpecs() {
			our, ok := strings.CutPrefix(p, module)
			if !ok || f.test || isWithinTests(f, our) {
				continue
			}
			if below, ok := layerOf(our); !ok || below >= own {
				t.Errorf("%s imports %s: it is in no layer below %s", f.lineOf(spec), our, f.dir)
			}
		}
	}
}

// isWithinTests reports whether an import is one of a test suite, or of what tests share, by another.
func isWithinTests(f sourceFile, imported string) bool {
	shared := strings.HasPrefix(imported, "internal/test/")
	return f.isBelow("internal/test") && shared || f.isBelow("test") && (shared || strings.HasPrefix(imported, "test/"))
}

// TestShellsKnowInterfaces: the shells know a mailbox and a model by their
// interfaces, so that each can be replaced.
func TestShellsKnowInterfaces(t *testing.T) {
	for _, f := range readSources(t) {
		if !f.isBelow("actors") || f.test {
			continue
		}
		for p, spec := range f.importSpecs() {
			our, ok := strings.CutPrefix(p, module)
			if ok && (strings.HasPrefix(our, "mailbox/") || strings.HasPrefix(our, "internal/logstore/") || strings.HasPrefix(our, "model/")) {
				t.Errorf("%s imports %s: actors know mailboxes and models by their interfaces", f.lineOf(spec), our)
			}
		}
	}
}
