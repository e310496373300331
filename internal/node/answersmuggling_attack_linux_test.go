package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus"
)

// smuggledLines are lines that the front could read as other messages than the server does: the decision would be the
// payload of a message for the one, and a message for the other.
var smuggledLines = map[string]func(decision string) string{
	// A carriage return before the end of a line makes the server drop the last digit of its size.
	"a carriage return within a line": func(decision string) string {
		size, rest := len(decision)/9, len(decision)%9 // size + len(decision) is 10*size + rest
		return fmt.Sprintf("PUB troupe.cmd.x\r %d%d\n%s\r\n%s", size, rest, strings.Repeat("x", size), decision)
	},
	// The server takes the line after a verb without arguments for its arguments.
	"arguments on the next line": func(decision string) string {
		inner := fmt.Sprintf("PUB troupe.cmd.x %d", len(decision)-len("\r\n"))
		return fmt.Sprintf("PUB \nx %d\r\n%s\r\n%s", len(inner), inner, decision)
	},
	"a message as the error of a client": func(decision string) string {
		return fmt.Sprintf("-ERR \nPUB troupe.cmd.x %d\r\n%s", len(decision)-len("\r\n"), decision)
	},
}

// brokenHeaders are headers that a client library does not read: it passes such a message on without any header, and so
// without the mark of the front.
var brokenHeaders = map[string]string{
	"a header without a colon":   "NATS/1.0\r\nx\r\n\r\n",
	"a header without its end":   "NATS/1.0\r\nA: b\r\n",
	"a header of another form":   "NATS/9.9\r\nA: b\r\n\r\n",
	"a name with a blank":        "NATS/1.0\r\nA b : c\r\n\r\n",
	"a line that continues none": "NATS/1.0\r\n A: b\r\n\r\n",
	"a line after the end":       "NATS/1.0\r\n\r\nx\r\n\r\n",
}

// TestAttackMarksThatAreNotRead: an agent's program sends its decision with a header that no client library reads, so that the
// node does not see who has sent it.
func TestAttackMarksThatAreNotRead(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	s := &refusalStage{t: t, dir: t.TempDir(), agents: t.TempDir()}
	s.deployAgent("deployer", "v1")
	s.node, s.web = startWeb(t, func(c *Config) { c.Roots = []string{s.dir, s.agents} })
	s.client = connectClient(t, s.node)
	for name, header := range brokenHeaders {
		body, err := json.Marshal(approve(s.ask("deployer", "a")))
		if err != nil {
			t.Fatal(err)
		}
		task := answererTask{Servers: s.node.embedded.URL(), Lines: fmt.Sprintf("HPUB troupe.cmd.answer %s %d %d\r\n%s%s\r\n", rawInbox, len(header), len(header)+len(body), header, body)}
		task.User, task.Password = s.node.embedded.Credential(bus.RoleClient)
		if got := s.runProgram("%s", task); got != "ended" && !strings.Contains(got, noAgent) {
			t.Errorf("%s: %q", name, got)
		}
		if fileExists(t, s.dir, "ran") {
			t.Fatalf("%s: the call has run", name)
		}
	}
}

// TestAttackSmuggledDecisions: an agent's program that speaks the protocol itself hides its decision in what the front takes
// for the payload of another message. The connection ends, and the call does not run.
func TestAttackSmuggledDecisions(t *testing.T) {
	t.Parallel()
	noLeaks(t)
	for name, smuggle := range smuggledLines {
		for _, socket := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, socket %v", name, socket), func(t *testing.T) {
				s := &refusalStage{t: t, dir: t.TempDir(), agents: t.TempDir()}
				s.deployAgent("deployer", "v1")
				s.node, s.web = startWeb(t, func(c *Config) { c.Roots = []string{s.dir, s.agents} })
				s.client = connectClient(t, s.node)
				task := answererTask{Lines: smuggle(publishLine(t, "troupe.cmd.answer", approve(s.ask("deployer", "a"))))}
				task.User, task.Password = s.node.embedded.Credential(bus.RoleClient)
				task.Servers = s.node.embedded.URL()
				if socket {
					task.Servers = "unix://" + s.node.cfg.StateDir + "/nats.sock"
				}
				if got := s.runProgram("%s", task); got != "ended" {
					t.Errorf("%q, want the connection to end", got)
				}
				if fileExists(t, s.dir, "ran") {
					t.Error("the call has run")
				}
			})
		}
	}
}
