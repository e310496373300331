package nodes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/httpapi"
	"github.com/troupe-run/troupe/internal/term"
)

// serverVariables are how the nodes reach the server: by the socket of its state
// directory, which proves it. They say nothing of another server.
func serverVariables(e localserver.Server) []string {
	node, service := e.ConnectOptions(bus.RoleNode), e.ConnectOptions(bus.RoleService)
	return []string{"NATS_URL=", "NATS_CONTEXT=", bus.OwnerVariable + "=" + node.Owner, "NATS_USER=" + node.User, "NATS_PASSWORD=" + node.Password,
		"TROUPE_SERVICE_USER=" + service.User, "TROUPE_SERVICE_PASSWORD=" + service.Password}
}

var errNodeBinary = errors.New("there is no troupe-node program")

// findNodeBinary finds troupe-node: at the given path, next to this program, or in PATH.
func findNodeBinary(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	self, err := os.Executable()
	if err == nil {
		if beside := filepath.Join(filepath.Dir(self), "troupe-node"); isRegularFile(beside) {
			return beside, nil
		}
	}
	if found, err := exec.LookPath("troupe-node"); err == nil {
		return found, nil
	}
	return "", &exit.Failure{Code: exit.Usage, Err: errNodeBinary, Hint: "go build -o troupe-node ./cmd/node, then --node-binary ./troupe-node"}
}

func isRegularFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// runNode runs one node and prints its output, line by line, behind its name.
func runNode(cmd *exec.Cmd, name string, to *lineWriter) error {
	runtime.LockOSThread() // see detachProcess
	defer runtime.UnlockOSThread()
	detachProcess(cmd)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	var read sync.WaitGroup
	read.Go(func() {
		s := bufio.NewScanner(out)
		s.Buffer(nil, upLineMax)
		for s.Scan() {
			to.writeNodeLine(name, s.Text())
		}
		_, _ = io.Copy(io.Discard, out) // a line that is too long must not block the node
	})
	err := cmd.Run()
	_ = in.Close() // of a pipe in memory: it cannot fail
	read.Wait()
	to.writeEnd(name, cmd.ProcessState.String())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// lineWriter writes whole lines from several nodes. It cleans each line, because a node may
// quote text that no terminal should receive as it is.
type lineWriter struct {
	mu   sync.Mutex
	to   io.Writer
	http httpAddressBook
	// starting is how many nodes have not said yet that they are ready; next is the line that follows the last of them.
	starting int
	next     string
}

// writeNodeLine writes a line of a node. One that names the node's address over HTTP also puts it into node.json.
func (w *lineWriter) writeNodeLine(name, text string) {
	w.writeLine(name + " | " + text)
	if rest, ok := strings.CutPrefix(text, httpapi.ReadyLine); ok {
		url, _, _ := strings.Cut(rest, ";")
		w.setHTTP(name, url)
	}
	w.reportReady(text)
}

// writeEnd says how a node has ended.
func (w *lineWriter) writeEnd(name, how string) {
	w.writeLine(name + " | ended: " + how)
	w.setHTTP(name, "")
}

func (w *lineWriter) setHTTP(name, url string) {
	w.mu.Lock()
	err := w.http.set(name, url)
	w.mu.Unlock()
	if err != nil {
		w.writeLine("node.json does not name the HTTP API: " + err.Error())
	}
}

func (w *lineWriter) writeLine(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = io.WriteString(w.to, term.CleanText(text)+"\n") // there is nowhere to report a failure
}
