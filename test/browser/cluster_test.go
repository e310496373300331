//go:build browser

package browser

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const clusterToken = "a-token-of-the-cluster-test"

// startCluster starts two nodes that share a server, and returns the address of the first one's page.
func (s *stage) startCluster() (address string) {
	s.t.Helper()
	state := filepath.Join(s.t.TempDir(), "state")
	up := exec.Command(s.troupe, "up", "--nodes", "2", "--lazy", "--http", "127.0.0.1:0", "--node-binary", s.node, "--root", s.work, "--store-dir", state)
	up.Env = append(os.Environ(), "TROUPE_HTTP_TOKEN="+clusterToken)
	out, err := up.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = up.Process.Signal(os.Interrupt)
		_ = up.Wait()
	})
	named := ""
	lines := bufio.NewScanner(out)
	for up := false; (address == "" || !up) && lines.Scan(); {
		named += lines.Text() + "\n"
		up = up || strings.Contains(lines.Text(), "NATS at")
		if _, rest, ok := strings.Cut(lines.Text(), "node-1 | http at "); ok {
			address, _, _ = strings.Cut(rest, ";")
		}
	}
	if address == "" {
		s.t.Fatalf("the nodes did not start:\n%s", named)
	}
	go func() { // the pipe must not fill up
		for lines.Scan() {
		}
	}()
	return address
}

// A person sees who holds which shards, and the streams; drains a node and resumes it by the keyboard, each after a dialog that says
// what changes.
func TestClusterIsShownAndDrained(t *testing.T) {
	s := newStage(t)
	address := s.startCluster()
	s.do("sign in with the token", chromedp.Navigate(address+"/#/nodes"), chromedp.WaitVisible("input[name=token]"), chromedp.SendKeys("input[name=token]", clusterToken+kb.Enter), s.sees("Streams of the logs"))
	s.do("pools, streams, leases", s.sees("default: "), s.sees("80 leases"), s.sees("TROUPE_BOX_DEFAULT_0"), s.sees("node-1"), s.sees("node-2"))
	s.do("the leases are opened by the keyboard", chromedp.Focus(".leases summary"), press(kb.Enter), s.sees("default.63"))
	s.checkView("cluster")
	s.do("the second node is chosen, and the dialog says what changes", press("j"), chromedp.Poll(`document.querySelector("tr.current th")?.innerText.startsWith("node-2")`, nil), press("d"), chromedp.WaitVisible("dialog"), s.sees("Drain node-2"), s.sees("shards → 0"))
	s.checkView("drain")
	s.do("nothing is sent before", press(kb.Escape), chromedp.WaitNotPresent("dialog"), s.lacks("leaving"))
	s.do("it is drained", press("d"), chromedp.WaitVisible("dialog"), press(kb.Enter), chromedp.WaitNotPresent("dialog"), s.sees("leaving"), s.sees("default: 64 (0–63)"))
	s.do("it is resumed", press("d"), chromedp.WaitVisible("dialog"), s.sees("acquires shards again"), press(kb.Enter), chromedp.WaitNotPresent("dialog"), s.lacks("leaving"), s.lacks("default: 64"))
}

// A node that owns its logs alone has no drain, and says how large its logs are.
func TestClusterOfOneNodeIsShown(t *testing.T) {
	s := newStage(t)
	s.signIn()
	s.do("the nodes", press("g"), press("c"), s.sees("alone"), s.sees("in files"), s.lacks("Drain"), s.sees("no throttle in use"))
}
