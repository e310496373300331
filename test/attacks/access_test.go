//go:build attacks && linux

package attacks

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

func init() {
	attacks["connect"] = connectAnywhere
	attacks["port"] = fakeServer
}

// connectAnywhere tries the port, the socket and the files of the owner. It prints
// what it gets.
func connectAnywhere(args []string) error {
	address, dir, config := args[0], args[1], args[2]
	for _, option := range []nats.Option{nats.Name("none"), nats.UserInfo("client", ""), nats.UserInfo("node", "x"), nats.UserInfo("anyone", ""), nats.Token("x")} {
		if nc, err := nats.Connect(address, option, nats.Timeout(5*time.Second)); err == nil {
			fmt.Println("the port takes a connection")
			nc.Close()
		}
	}
	if conn, err := net.Dial("unix", filepath.Join(dir, "nats.sock")); err == nil {
		fmt.Println("the socket takes a connection")
		_ = conn.Close()
	}
	for _, path := range []string{filepath.Join(dir, "node.json"), filepath.Join(config, "nats", "context", "troupe.json")} {
		if data, err := os.ReadFile(path); err == nil {
			fmt.Printf("%s is readable: %s\n", path, data)
		}
	}
	if nc, _, err := bus.JoinOwner(dir); err == nil {
		fmt.Println("the state directory is joined")
		nc.Close()
	}
	return nil
}

// fakeServer listens on a port of the owner's, greets as a NATS server does and prints
// what it is sent.
func fakeServer(args []string) error {
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.WriteString(conn, `INFO {"server_id":"x","version":"2.12.7","proto":1,"max_payload":1048576}`+"\r\n")
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				fmt.Println(lines.Text())
				if strings.HasPrefix(lines.Text(), "PING") {
					_, _ = io.WriteString(conn, "PONG\r\n")
				}
			}
		}()
	}
}

// nodeFile is what the owner's node says of itself.
func nodeFile(t *testing.T) (file statedir.NodeFile) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(owner.stateDir(), "node.json"))
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAttackOtherAccountCannotConnect: the other account gets in neither by the port nor by
// the socket nor by a file.
func TestAttackOtherAccountCannotConnect(t *testing.T) {
	startNode(t, "--nats-port", "-1")
	file := nodeFile(t)
	config := filepath.Join(owner.home, "config")
	r := runCommand(t, attackCommand(t, "connect", file.Address, owner.stateDir(), config))
	if r.code != 0 || r.stdout != "" {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if info, err := os.Stat(filepath.Join(config, "nats", "context", "troupe.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the context of observers: %v, %v", info, err)
	}
	// The owner itself gets in.
	if r := runCommand(t, owner.newCommand(t, troupeBinary, "list")); r.code != 0 {
		t.Errorf("the owner: exit %d: %s", r.code, r.stderr)
	}
	for _, args := range [][]string{{"list"}, {"run", "secret-prompt"}} {
		cmd := attacker.newCommand(t, troupeBinary, append(args, "--store-dir", owner.stateDir())...)
		if r := runCommand(t, cmd); r.code == 0 {
			t.Errorf("the attacker's troupe %v: %s%s", args, r.stdout, r.stderr)
		}
	}
}

// TestAttackPortTakenAfterACrashReceivesNothing: the node is killed, and the other account listens on its
// port. A command of the owner sends it nothing.
func TestAttackPortTakenAfterACrashReceivesNothing(t *testing.T) {
	node := startNode(t, "--nats-port", "-1")
	file := nodeFile(t)
	if err := syscall.Kill(-node.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait() // killed, as said
	if nodeFile(t) != file {
		t.Fatal("node.json did not outlast the kill")
	}
	fake := attackCommand(t, "port", strings.TrimPrefix(file.Address, "nats://"))
	out, err := fake.StdoutPipe()
	if err == nil {
		err = fake.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1024)
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said <- lines.Text()
		}
	}()
	if line := <-said; line != "listening" {
		t.Fatalf("the fake server: %q", line)
	}
	r := runCommand(t, owner.newCommand(t, troupeBinary, "run", "-m", "builtin/scout", "secret-prompt"))
	if r.code != 8 { // it ran, and refused: it had no directory to look at
		t.Errorf("the owner's run: exit %d: %s", r.code, r.stderr)
	}
	if err := syscall.Kill(-fake.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	for line := range said {
		t.Errorf("the fake server heard %s", line)
	}
	_ = fake.Wait() // killed, as said
}

// TestAttackOpenAccessOpensOnlyWhatItsFlagsSay: the flags open what they say to the other account, and no more.
func TestAttackOpenAccessOpensOnlyWhatItsFlagsSay(t *testing.T) {
	for flag, want := range map[string][2]bool{"--open-watch": {true, false}, "--open-control": {true, true}} {
		t.Run(flag, func(t *testing.T) {
			node := startNode(t, "--nats-port", "-1", flag)
			address := nodeFile(t).Address
			for i, args := range [][]string{{"doctor"}, {"list"}} {
				r := runCommand(t, attacker.newCommand(t, troupeBinary, append(args, "-s", address)...))
				opened := r.code == 0
				if i == 0 { // doctor asks for verbs too: what counts is that it was let in
					opened = !strings.Contains(r.stdout+r.stderr, "refused the credentials")
				}
				if opened != want[i] {
					t.Errorf("%v: exit %d: %s%s", args, r.code, r.stdout, r.stderr)
				}
			}
			if r := runCommand(t, attacker.newCommand(t, troupeBinary, "prune", "--older-than", "1h", "-s", address)); r.code == 0 {
				t.Errorf("the attacker pruned: %s", r.stdout)
			}
			_ = syscall.Kill(-node.Process.Pid, syscall.SIGKILL)
			_ = node.Wait() // killed, as said
			if err := os.Remove(filepath.Join(owner.stateDir(), "node.json")); err != nil {
				t.Fatal(err)
			}
		})
	}
}
