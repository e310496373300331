package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-run/troupe/internal/ui"
)

// A node with every door that its flags open by default listens nowhere without asking for a credential: the kernel's
// tables list the sockets, and a stranger tries each.
//
//behaviour:shows K16
func TestEveryListenerAsksForACredential(t *testing.T) {
	state := t.TempDir()
	cmd := command(t, "--store-dir", state, "--nats-port", "-1", "--durability", "lazy", "--http", "127.0.0.1:0")
	startNode(t, cmd)
	listeners := listenersOf(t, cmd.Process.Pid)
	asked := map[string]int{}
	for _, l := range listeners {
		if l.network == "unix" {
			if dir, err := os.Stat(filepath.Dir(l.address)); err != nil || dir.Mode().Perm() != 0o700 {
				t.Errorf("the directory of the socket %s: %v %v", l.address, dir.Mode(), err)
			}
		} else if host, _, err := net.SplitHostPort(l.address); err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("it listens on %s, which is reached from other machines", l.address)
		}
		asked[l.tryAsStranger(t)]++
	}
	if asked["NATS"] < 2 || asked["HTTP"] != 1 {
		t.Errorf("of %v a stranger was refused by %v", listeners, asked)
	}
}

type listener struct{ network, address string }

// listenersOf lists the sockets of a process that accept connections.
func listenersOf(t *testing.T, pid int) (list []listener) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("the descriptors of %d: %v", pid, err)
	}
	var sockets []string
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil { // one that was closed meanwhile is none
			sockets = append(sockets, to)
		}
	}
	for table, parse := range map[string]func([]string) (listener, string, bool){"tcp": parseTCP, "tcp6": parseTCP, "unix": parseUnix} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue // a kernel without it has no such sockets
		}
		for _, line := range strings.Split(string(data), "\n")[1:] {
			if l, inode, ok := parse(strings.Fields(line)); ok && slices.Contains(sockets, "socket:["+inode+"]") {
				list = append(list, l)
			}
		}
	}
	return list
}

// parseTCP reads a line of /proc/net/tcp or tcp6; the state 0A is LISTEN.
func parseTCP(f []string) (l listener, inode string, ok bool) {
	if len(f) < 10 || f[3] != "0A" {
		return l, "", false
	}
	host, port, _ := strings.Cut(f[1], ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		return l, "", false
	}
	for i := 0; i+4 <= len(raw); i += 4 { // each word is in the machine's order
		slices.Reverse(raw[i : i+4])
	}
	var number int
	if _, err := fmt.Sscanf(port, "%X", &number); err != nil {
		return l, "", false
	}
	return listener{"tcp", net.JoinHostPort(net.IP(raw).String(), fmt.Sprint(number))}, f[9], true
}

// parseUnix reads a line of /proc/net/unix; the flag 00010000 is that of a socket which accepts connections.
func parseUnix(f []string) (l listener, inode string, ok bool) {
	if len(f) < 8 || f[3] != "00010000" {
		return l, "", false
	}
	return listener{"unix", f[7]}, f[6], true
}

// tryAsStranger connects without a credential, and returns the protocol that refused it.
func (l listener) tryAsStranger(t *testing.T) string {
	t.Helper()
	if said := l.say(t, "CONNECT {\"verbose\":true}\r\nPING\r\n"); strings.HasPrefix(said, "INFO ") {
		if !strings.Contains(said, "-ERR 'Authorization Violation'") || strings.Contains(said, "PONG") {
			t.Errorf("%s lets a stranger in: %s", l.address, said)
		}
		return "NATS"
	}
	for _, path := range []string{"/nowhere", "/healthz", "/readyz", "/metrics", "/api/v1/runs", "/api/v1/openapi.json", "/v1/chat/completions", "/mcp", "/debug/pprof/"} {
		said := l.say(t, "GET "+path+" HTTP/1.1\r\nHost: "+l.address+"\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(said, "HTTP/1.1 401 ") {
			t.Errorf("%s answers a stranger on %s: %.200s", l.address, path, said)
		}
	}
	// The page is the same for everybody and knows nothing of the node: it asks for a ticket.
	if said := l.say(t, "GET / HTTP/1.1\r\nHost: "+l.address+"\r\nConnection: close\r\n\r\n"); !strings.HasSuffix(said, string(ui.Page())) {
		t.Errorf("%s answers a stranger with other things than the page: %.200s", l.address, said)
	}
	return "HTTP"
}

// say sends a text and returns what comes until the other side closes.
func (l listener) say(t *testing.T, text string) string {
	t.Helper()
	c, err := net.Dial(l.network, l.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(text)); err != nil {
		return "" // it was refused before
	}
	var b strings.Builder
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String()
		}
	}
}
