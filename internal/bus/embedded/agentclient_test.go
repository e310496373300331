package embedded

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/internal/bus"
)

// The subjects of decisions are those of operators, of owners and of machines.
func TestAttackDecisionsOfOwnersAreMarked(t *testing.T) {
	t.Parallel()
	f := &proxyListener{}
	for _, verb := range []string{"answer", "restore", "context", "run", "permissions"} {
		for _, subject := range []string{"troupe.cmd." + verb, "troupe.cmd." + verb + ".host-a", "troupe.cmd.as.alice." + verb, "troupe.cmd.as.as." + verb + ".host-a"} {
			if !f.isDecision([]byte("PUB " + subject + " 2\r\n")) {
				t.Errorf("%s is not marked", subject)
			}
		}
	}
	for _, line := range []string{"PUB troupe.cmd.list 0\r\n", "PUB troupe.cmd.as.answer.list 0\r\n", "PUB troupe.evt.answer 0\r\n", "SUB troupe.cmd.answer 1\r\n", "PUB\r\n", "PUB troupe.cmd.as 0\r\n"} {
		if f.isDecision([]byte(line)) {
			t.Errorf("%q is marked", line)
		}
	}
}

// A message of an agent's program gets a header more, whether it has others or none, and keeps its subjects and its body.
func TestMessagesOfAgentsAreMarked(t *testing.T) {
	t.Parallel()
	mark := bus.AgentHeader + ": true\r\n"
	for _, c := range []struct{ sent, want string }{
		{"PUB troupe.cmd.answer _INBOX.x 2\r\n{}\r\n", "HPUB troupe.cmd.answer _INBOX.x 40 42\r\nNATS/1.0\r\n" + mark + "\r\n{}\r\n"},
		{"pub troupe.cmd.answer 0\r\n\r\n", "HPUB troupe.cmd.answer 40 40\r\nNATS/1.0\r\n" + mark + "\r\n\r\n"},
		{"HPUB troupe.cmd.answer _INBOX.x 18 20\r\nNATS/1.0\r\nA: b\r\n\r\n{}\r\n", "HPUB troupe.cmd.answer _INBOX.x 46 48\r\nNATS/1.0\r\n" + mark + "A: b\r\n\r\n{}\r\n"},
		{"HPUB troupe.cmd.answer 15 17\r\nNATS/1.0\r\nA\r\n\r\n{}\r\n", "HPUB troupe.cmd.answer 40 42\r\nNATS/1.0\r\n" + mark + "\r\n{}\r\n"}, // a header that nobody reads
	} {
		in := bufio.NewReader(strings.NewReader(c.sent + "PING\r\n"))
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := forwardMarked(&out, line, in); err != nil || out.String() != c.want {
			t.Errorf("%q: %v\n%q, want\n%q", c.sent, err, out.String(), c.want)
		}
		if rest, err := in.ReadString('\n'); rest != "PING\r\n" || err != nil {
			t.Errorf("%q: the next line is %q, %v", c.sent, rest, err)
		}
	}
	for _, sent := range []string{
		"PUB troupe.cmd.answer 999999999\r\n", "PUB troupe.cmd.answer x\r\n", "HPUB troupe.cmd.answer 99 2\r\n{}\r\n", "HPUB troupe.cmd.answer 5 20\r\nNATS/1.0\r\nA: b\r\n\r\n{}\r\n",
	} {
		in := bufio.NewReader(strings.NewReader(sent))
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := forwardMarked(&bytes.Buffer{}, line, in); err == nil {
			t.Errorf("%q is passed on", sent)
		}
	}
}

// The front ends a connection at a line that the server may read as another message than the front does.
func TestAttackAmbiguousLinesEndTheConnection(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"PUB a 5\r\n": true, "pub\ta\tb\t5\n": true, "PING\r\n": true, "pong\n": true, "CONNECT {\"user\":\"a b\"}\r\n": true, "SUB a 1\r\n": true, "UNSUB 1\r\n": true, "CONNECT {\"name\":\"a\u00a0b\"}\r\n": true,
		"PUB a\r 50\n": false, "PUB a 50\r \n": false, "PUB a 5\r\r\n": false, "PUB \n": false, "PUB \r\n": false, "HPUB\t\n": false, "INFO\n": false, "-ERR \n": false,
		"CONNECT \n": false, "\r\n": false, " \n": false,
	} {
		if got := isUnambiguous([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
