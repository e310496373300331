package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/cli/agents"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/models"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/config"
	"github.com/troupe-run/troupe/internal/sandbox"
	"github.com/troupe-run/troupe/internal/term"
)

// checkBuild reports the version of this program.
func (cs *Commands) checkBuild() checkup {
	v := buildVersion()
	c := checkup{"build", proven, fmt.Sprintf("troupe %s, %s, %s/%s", v["version"], v["go"], runtime.GOOS, runtime.GOARCH), ""}
	if v["commit"] == "" {
		c.Status, c.Detail, c.Remedy = unproven, c.Detail+", of an unknown commit", "go build in a checkout records the commit"
	} else {
		c.Detail += ", commit " + v["commit"][:min(12, len(v["commit"]))]
	}
	return c
}

func (cs *Commands) checkSettings() checkup {
	found, err := config.Load(config.SettingSources{Dir: ".", Getenv: cs.Console.Getenv})
	if err != nil {
		return checkup{"configuration", broken, err.Error(), "troupe config schema lists the settings"}
	}
	return checkup{"configuration", proven, console.CountOf(len(found), "setting") + " changed from the defaults: troupe config view", ""}
}

// checkNATS connects, or starts a server as a run would, and asks the node.
func (cs *Commands) checkNATS(ctx context.Context) []checkup {
	in, clean, err := cs.stateDirToCheck()
	if err != nil {
		return []checkup{{"nats", broken, err.Error(), "make the state directory readable"}}
	}
	defer clean()
	sessions := *cs.Sessions
	sessions.StateDir = in
	s, err := sessions.Open(ctx, session.ToInspect)
	if err != nil {
		f := exit.Explain(err)
		return []checkup{{"nats", broken, exit.PlainText(f.Err), f.Hint}}
	}
	runs, nodeErr := s.List(ctx)
	list := checkServer(ctx, s, nodeErr == nil)
	if proof := proofChecks(ctx, s); proof != nil {
		list = append(list, proof...)
	} else {
		list = append(list, checkDurability(s, statedir.StateDir(in)))
	}
	if nodeErr != nil {
		f := exit.Explain(nodeErr)
		list = append(list, checkup{"node", broken, exit.PlainText(f.Err), f.Hint})
	} else {
		list = append(list, checkup{"node", proven, "it answers and lists " + console.CountOf(len(runs), "run"), ""}, checkClock(runs))
	}
	if err := s.Close(); err != nil {
		list = append(list, checkup{"end", broken, err.Error(), "-v shows the server's log"})
	}
	return list
}

// stateDirToCheck is the state directory, or one for this check alone: looking must
// not make it.
func (cs *Commands) stateDirToCheck() (dir string, clean func(), err error) {
	if _, err := os.Stat(statedir.StateDir(cs.Sessions.StateDir)); cs.Sessions.Conn.NamesServer() || !errors.Is(err, os.ErrNotExist) {
		return cs.Sessions.StateDir, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "troupe-doctor-")
	return dir, func() { _ = os.RemoveAll(dir) }, err // it is in the directory that the system cleans up
}

// checkServer looks at the server that was found or started. A node that
// answers keeps its index of runs in JetStream; without one the server is asked.
func checkServer(ctx context.Context, s *session.Session, answers bool) []checkup {
	how := "connected to " + s.Address
	switch {
	case s.Node != nil:
		how = "a server in this process, through the socket in its state directory"
	case s.OwnerPID > 0:
		how = fmt.Sprintf("connected to the node of process %d through its socket", s.OwnerPID)
	}
	info, err := s.Server(ctx, !answers)
	if err != nil {
		return []checkup{{"nats", broken, exit.PlainText(err), "check the address and the network"}}
	}
	list := []checkup{{"nats", proven, fmt.Sprintf("%s, version %s, %s away", how, info.Version, info.RTT.Round(time.Microsecond)), ""}}
	if answers {
		return append(list, checkup{"jetstream", proven, "the node stores its index of runs in it", ""})
	}
	if info.JetStream != nil {
		f := exit.Explain(info.JetStream)
		return append(list, checkup{"jetstream", broken, exit.PlainText(f.Err), f.Hint})
	}
	return append(list, checkup{"jetstream", proven, "it is enabled for this account", ""})
}

// proofChecks returns the promises of the server that the answering node has verified.
func proofChecks(ctx context.Context, s *session.Session) []checkup {
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return nil
	}
	var list []checkup
	for _, n := range nodes {
		for _, pool := range slices.Sorted(maps.Keys(n.Unreadable)) {
			list = append(list, checkup{"shards", broken, fmt.Sprintf("node %s cannot read shards %v of pool %s: their runs do not proceed", n.Name, n.Unreadable[pool], pool),
				"see \"shard cannot be read\" in its log; restore the stream, or start its servers"})
		}
		if n.Proof == nil {
			continue
		}
		if j := n.LogHealth; j != nil {
			c := checkup{"logs", broken, j.Why, j.Remedy}
			if j.Low {
				c.Status = unproven
			}
			list = append(list, c)
		}
		for _, f := range n.Proof.Findings {
			list = append(list, checkup{f.Check, string(f.Status), f.Detail, f.Remedy})
		}
	}
	return list
}

// checkDurability reports how durable acknowledged writes are, for a node that does
// not report it.
func checkDurability(s *session.Session, dir string) checkup {
	c := checkup{Check: "durability", Status: unproven}
	switch {
	case s.Node != nil:
		return checkup{"durability", proven, "sync: a server in process syncs each write before it is acknowledged", ""}
	case s.IsElsewhere():
		c.Detail, c.Remedy = "a remote server does not report when it syncs", "set jetstream.sync_interval to always on that server, or replicate the streams"
		return c
	}
	file, err := statedir.ReadNodeFile(dir)
	switch {
	case err != nil:
		c.Detail, c.Remedy = exit.PlainText(err), "run doctor again"
	case file.Durability == statedir.DurabilityLazy:
		c.Detail, c.Remedy = "the owner reports lazy: acknowledged writes survive its process, not the machine", "start the node with --durability sync"
	case file.Durability == statedir.DurabilitySync:
		c.Detail, c.Remedy = "the owner reports sync: each write is on the disk before it is acknowledged", "only a power cut shows whether the disk honors a sync"
	default:
		c.Detail, c.Remedy = "the owner does not report it", "it runs an older release of troupe: restart it"
	}
	return c
}

// clockSkew is how far ahead of this clock a run may have begun.
const clockSkew = time.Minute

func checkClock(runs []client.RunInfo) checkup {
	now := time.Now()
	if v := buildVersion()["date"]; v != "" {
		if built, err := time.Parse(time.RFC3339, v); err == nil && now.Before(built) {
			return checkup{"clock", broken, now.UTC().Format(time.RFC3339) + " is before this program was built", "set the clock"}
		}
	}
	for _, r := range runs {
		if at, err := time.Parse(time.RFC3339, r.Started); err == nil && at.Sub(now) > clockSkew {
			return checkup{"clock", broken, fmt.Sprintf("run %s started %s in the future", term.CleanLine(r.RunID), term.FormatDuration(at.Sub(now))), "set the clocks of this machine and of the node"}
		}
	}
	if len(runs) == 0 {
		return checkup{"clock", unproven, now.UTC().Format(time.RFC3339) + "; there is no run to compare it with", "compare it with another clock"}
	}
	return checkup{"clock", proven, now.UTC().Format(time.RFC3339) + ", later than the start of every run", ""}
}

// keyNames are the variables that can hold a key or say where a model is.
var keyNames = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL",
	"OLLAMA_HOST"}

// checkKeys reports which keys are set, never their values.
func (cs *Commands) checkKeys() checkup {
	var set []string
	for _, name := range keyNames {
		if strings.TrimSpace(cs.Console.Getenv(name)) != "" {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return checkup{"keys", proven, "none is set, and none is needed for builtin/scout", ""}
	}
	return checkup{"keys", unproven, "set: " + strings.Join(set, ", "), "check them with troupe models ping"}
}

func (cs *Commands) checkModel(ctx context.Context) checkup {
	choice, err := models.Choose(ctx, cs.Sessions, "")
	if err != nil {
		return checkup{"model", broken, err.Error(), "troupe models list shows the models"}
	}
	c := checkup{"model", proven, choice.Name() + " (" + choice.Why + ")", ""}
	switch {
	case choice.Provider == "builtin", choice.Provider == "script":
	case !choice.Price.Known:
		c.Status, c.Detail, c.Remedy = unproven, c.Detail+"; its price is unknown", "limit the tokens: a money limit needs a price"
	default:
		c.Status, c.Remedy = unproven, "check it with troupe models ping"
	}
	return c
}

// gitTimeout is how long git may take to say its version.
const gitTimeout = 2 * time.Second

func checkGit(ctx context.Context) checkup {
	ctx, end := context.WithTimeout(ctx, gitTimeout)
	defer end()
	cmd := exec.CommandContext(ctx, "git", "--version")
	cmd.WaitDelay = gitTimeout
	out, err := cmd.Output()
	if err != nil {
		return checkup{"git", broken, "git cannot be run: " + err.Error(), "install it: the git tools need it"}
	}
	return checkup{"git", proven, strings.TrimSpace(string(out)), ""}
}

// checkSandbox reports what is enforced for commands of the tool shell.
func checkSandbox(ctx context.Context) checkup {
	report, err := sandbox.Probe(ctx)
	if err != nil {
		return checkup{"sandbox", broken, "commands of the shell tool cannot run: " + err.Error(), "see docs/sandbox.md"}
	}
	if missing := report.Missing(); len(missing) > 0 {
		return checkup{"sandbox", unproven, "for commands of the shell tool this system does not enforce: " + missing.String(), "a person is asked before they run; see docs/sandbox.md"}
	}
	return checkup{"sandbox", proven, "commands of the shell tool are confined: " + report.String(), ""}
}

// checkAgents looks at the agent files that a run here would find.
func (cs *Commands) checkAgents() checkup {
	g := agents.Sources{Dir: "."}
	r, err := g.ReadRoster()
	switch {
	case err != nil:
		return checkup{"agents", broken, err.Error(), "troupe agents validate"}
	case len(r.Problems) > 0:
		return checkup{"agents", unproven, console.CountOf(len(r.Problems), "problem") + " in agent files", "troupe agents validate shows them"}
	}
	return checkup{"agents", proven, console.CountOf(len(r.Agents), "agent") + ", built in and from files", ""}
}
