//go:build unix && !freebsd

package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
)

// fewFilesDir makes the test binary a node that may have few open files.
const fewFilesDir = "TROUPE_TEST_FEW_FILES_DIR"

func init() { children[fewFilesDir] = serveWithFewFiles }

const (
	fewFiles  = 600
	ownFiles  = 300 // that the node opens while strangers hold the port
	strangers = 900
)

// serveWithFewFiles is the child: it listens, and opens files of its own when told to.
func serveWithFewFiles(dir string) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: fewFiles, Max: fewFiles}); err != nil {
		return err
	}
	e, err := embedded.Start(embedded.Config{StateDir: dir, Port: embedded.FreePort, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	fmt.Println(strings.TrimPrefix(e.URL(), "nats://"))
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	for i := range ownFiles {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("own%d", i)))
		if err != nil {
			return err
		}
		defer f.Close()
	}
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if _, err := js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "S", Subjects: []string{"troupe.box.x"}}); err != nil {
		return err
	}
	return e.Close()
}

// TestAttackConnectionsLeaveTheNodeItsDescriptors: strangers hold as many connections of
// the port as they can get, and the node still opens its files.
func TestAttackConnectionsLeaveTheNodeItsDescriptors(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fewFilesDir+"="+t.TempDir())
	var logged strings.Builder
	cmd.Stderr = &logged
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for range strangers {
		conn, err := net.Dial("tcp", strings.TrimSpace(address))
		if err != nil {
			break
		}
		defer conn.Close()
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 4)
		if n, _ := io.ReadFull(conn, first); n < len(first) || string(first) == "-ERR" {
			break
		}
		held++
	}
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("beside %d connections the node cannot go on: %v", held, err)
	}
	if !strings.Contains(logged.String(), "open_files_max=600") || !strings.Contains(logged.String(), "port_connections_max=44") {
		t.Errorf("logged: %s", logged.String())
	}
}
