package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/sandbox"
)

// probeVar makes this test binary do one thing that no shell can, and say how it went.
const probeVar = "SANDBOX_TEST_PROBE"

func TestMain(m *testing.M) {
	if what := os.Getenv(probeVar); what != "" {
		probeSelf(strings.Fields(what))
	}
	os.Exit(m.Run())
}

func probeSelf(what []string) {
	err := errors.New("no such probe")
	switch what[0] {
	case "dial":
		var c net.Conn
		if c, err = net.DialTimeout(what[1], what[2], 5*time.Second); err == nil {
			_, err = c.Write([]byte("hello"))
		}
	case "talk": // to itself, over its own loopback
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			_, err = net.DialTimeout("tcp", l.Addr().String(), 5*time.Second)
		}
	case "unshare":
		err = unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNS)
	case "mount":
		err = unix.Mount("none", what[1], "tmpfs", 0, "")
	case "alloc":
		n, _ := strconv.Atoi(what[1])
		held := make([]byte, n)
		for i := 0; i < n; i += 4096 {
			held[i] = 1
		}
		err = nil
	case "call":
		err = forbiddenCall(what[1])
	case "old":
		err = runOnOldKernel(what[1], what[2], what[3])
	case "node": // one that waits for a command, until it is killed
		_, err = sandbox.Run(context.Background(), sandbox.Spec{Command: what[2], Dir: what[1]})
	}
	if err != nil {
		fmt.Println("refused:", err)
		os.Exit(3)
	}
	fmt.Println("done")
	os.Exit(0)
}

// systems are what a kernel may leave us: each is a promise of its own.
var systems = map[string]sandbox.Less{"all": {}, "without namespaces": {Namespaces: true}, "without Landlock": {Landlock: true}}

// eachBox runs a test on all of them.
func eachBox(t *testing.T, test func(t *testing.T, b *testBox)) {
	for name, less := range systems {
		t.Run(name, func(t *testing.T) { test(t, &testBox{t: t, less: less, dir: t.TempDir()}) })
	}
}

// testBox is a directory to run commands in.
type testBox struct {
	t    *testing.T
	less sandbox.Less
	dir  string
	spec sandbox.Spec
}

func (b *testBox) runCommand(format string, args ...any) sandbox.Output {
	b.t.Helper()
	out, err := b.runIn(b.t.Context(), fmt.Sprintf(format, args...))
	if err != nil {
		b.t.Fatalf("%v: %s", err, out.Stdout)
	}
	return out
}

func (b *testBox) runIn(ctx context.Context, command string) (sandbox.Output, error) {
	spec := b.spec
	spec.Command, spec.Dir, spec.Less = command, b.dir, b.less
	return sandbox.Run(ctx, spec)
}

// probeInBox runs this test binary in the box.
func (b *testBox) probeInBox(format string, args ...any) sandbox.Output {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	b.spec.Read = []string{filepath.Dir(self)}
	return b.runCommand("%s='%s' %s", probeVar, fmt.Sprintf(format, args...), self)
}

// isEnforced reports whether the system keeps a promise here.
func (b *testBox) isEnforced(what string) bool {
	b.t.Helper()
	for _, f := range b.runCommand(":").Report {
		if f.What == what {
			return f.Held
		}
	}
	b.t.Fatalf("nothing is said of %s", what)
	return false
}

// secretFile is a file of a person, outside of the box.
func secretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("canary-of-a-person"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// wantRefused runs commands none of which may tell the canary or end well.
func (b *testBox) wantRefused(commands ...string) {
	b.t.Helper()
	for _, c := range commands {
		if out := b.runCommand("%s", c); out.Exit == 0 || strings.Contains(string(out.Stdout), "canary") {
			b.t.Errorf("%s: exit code %d: %s", c, out.Exit, out.Stdout)
		}
	}
}

func TestACommandRunsInItsDirectoryAndSaysHowItEnded(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		out := b.runCommand("pwd; echo to-stderr >&2; echo x > f; mkdir d; mv f d/g; ln -s d l; cat l/g; rm -r d; exit 3")
		if string(out.Stdout) != b.dir+"\nto-stderr\nx\n" || out.Exit != 3 {
			t.Errorf("%d: %s", out.Exit, out.Stdout)
		}
		if out := b.runCommand("kill -9 $$"); out.Exit != -1 || out.Signal != 9 {
			t.Errorf("%+v", out)
		}
		if out := b.runCommand(`echo x > "$TMPDIR/y"; echo "$HOME" | grep -c "$TMPDIR"; cat "$TMPDIR/y"; echo z > /dev/null; head -c 3 /dev/zero | wc -c; echo err > /dev/stderr`); out.Exit != 0 || string(out.Stdout) != "1\nx\n3\nerr\n" {
			t.Errorf("%d: %s", out.Exit, out.Stdout)
		}
		if out := b.runCommand("cat"); out.Exit != 0 || len(out.Stdout) > 0 {
			t.Errorf("it reads from somewhere: %+v", out)
		}
	})
}

func TestACommandThatCannotBeIsRefused(t *testing.T) {
	for _, c := range []string{"", " ", "a\x00b", strings.Repeat("x", sandbox.CommandBytesMax+1)} {
		if _, err := sandbox.Run(t.Context(), sandbox.Spec{Command: c, Dir: t.TempDir()}); !errors.Is(err, sandbox.ErrCommand) {
			t.Errorf("%.20q: %v", c, err)
		}
	}
	if _, err := sandbox.Run(t.Context(), sandbox.Spec{Command: ":", Dir: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestAPersonsFilesAreNeitherReadNorWritten(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		if !b.isEnforced(sandbox.Files) {
			return // the report says so, which the test of reports sees
		}
		file := secretFile(t)
		if err := os.Symlink(file, filepath.Join(b.dir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Dir(file), filepath.Join(b.dir, "up")); err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(b.dir, file)
		if err != nil {
			t.Fatal(err)
		}
		b.wantRefused("cat "+file, "cat "+rel, "cat link", "cat up/secret", "ls "+filepath.Dir(file), "ls ..", "ls /root", "ls /home", "cat /etc/shadow", "ls /var/log",
			"ln "+file+" hard && cat hard", "cp "+file+" copy", "rm -f a; ln -s "+file+" a; cat a", "cat /proc/self/root"+file, "cat /proc/self/cwd/"+rel)
		b.wantRefused("echo x > "+file, "echo x >> link", "echo x > ../new", "rm "+file, "mv "+file+" .", "echo x > /etc/new", "echo x > /usr/new",
			"echo x > /dev/shm/new", "mkdir /var/tmp/new", "echo x > /dev/tty", "echo 1 > /proc/sys/kernel/sysrq", "mkdir /sys/fs/cgroup/new")
		if b.isEnforced(sandbox.Isolation) { // Landlock knows nothing of modes and times
			b.wantRefused("chmod 600 "+file, "touch "+file)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != "canary-of-a-person" {
			t.Errorf("%q %v", data, err)
		}
	})
}

// TestALinkSwappedInBetweenLeadsNowhere: the command itself swaps, as often as it likes.
func TestALinkSwappedInBetweenLeadsNowhere(t *testing.T) {
	b := &testBox{t: t, dir: t.TempDir()}
	file := secretFile(t)
	out := b.runCommand(`echo mine > real; i=0; while [ $i -lt 60 ]; do ln -sf real x; ln -sf %s x & cat x 2>/dev/null; wait; i=$((i+1)); done; :`, file)
	if strings.Contains(string(out.Stdout), "canary") {
		t.Error("the canary was read")
	}
}

//behaviour:shows E6
func TestCommandInheritsNoEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "canary-key")
	t.Setenv("LD_PRELOAD_OF_NODE", "canary-other")
	eachBox(t, func(t *testing.T, b *testBox) {
		b.spec.Env = []string{"GIVEN=1"}
		out := b.runCommand("env; echo; cat /proc/self/environ; cat /proc/1/environ /proc/$PPID/environ; grep -la canary-key /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ; cat /proc/%d/environ; :", os.Getpid())
		if strings.Contains(string(out.Stdout), "canary") || !strings.Contains(string(out.Stdout), "GIVEN=1") {
			t.Errorf("%s", out.Stdout)
		}
		for _, line := range strings.Split(strings.Split(string(out.Stdout), "\n\n")[0], "\n") {
			name, _, _ := strings.Cut(line, "=")
			if !strings.Contains(" PATH LANG LC_ALL TZ TERM HOME TMPDIR GIVEN PWD OLDPWD SHLVL _ ", " "+name+" ") {
				t.Errorf("it was given %s", line)
			}
		}
	})
}

// TestNoDescriptorOfOursIsInherited opens one that nobody marked to be closed.
func TestNoDescriptorOfOursIsInherited(t *testing.T) {
	file := secretFile(t)
	fd, err := unix.Open(file, unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	const high = 77
	if err := unix.Dup3(fd, high, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd); _ = unix.Close(high) })
	eachBox(t, func(t *testing.T, b *testBox) {
		out := b.runCommand("for f in /proc/self/fd/*; do echo ${f##*/}; done; cat <&%d; cat /proc/self/fd/%d /dev/fd/%d; :", fd, high, high)
		if strings.Contains(string(out.Stdout), "canary") {
			t.Errorf("%s", out.Stdout)
		}
		out = b.runCommand("ls /proc/self/fd | wc -l") // 0, 1, 2, and that of the directory
		if n, err := strconv.Atoi(strings.TrimSpace(string(out.Stdout))); err != nil || n > 4 {
			t.Errorf("%s descriptors: %s", out.Stdout, b.runCommand("ls -l /proc/self/fd").Stdout)
		}
	})
}

func TestNoNetworkIsReached(t *testing.T) {
	asked := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- "http" }))
	t.Cleanup(s.Close)
	abstract, err := net.Listen("unix", fmt.Sprintf("@troupe-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = abstract.Close() })
	eachBox(t, func(t *testing.T, b *testBox) {
		net, files := b.isEnforced(sandbox.Network), b.isEnforced(sandbox.Files)
		if out := b.probeInBox("dial tcp %s", s.Listener.Addr()); out.Exit == 0 && (net || files) {
			t.Errorf("the server of the machine was reached: %s", out.Stdout)
		}
		if out := b.probeInBox("dial unix %s", abstract.Addr()); out.Exit == 0 && (net || b.hasScopes()) {
			t.Errorf("an abstract socket was reached: %s", out.Stdout)
		}
		if !net && files {
			t.Error("the filter of sockets and Landlock are there, and the report says that the network can be reached")
		}
		if out := b.probeInBox("dial udp 192.0.2.1:53"); out.Exit == 0 && net {
			t.Errorf("a packet got out: %s", out.Stdout)
		}
		if out := b.probeInBox("talk"); net && (out.Exit == 0) == b.less.Namespaces {
			t.Errorf("it talks to itself where it has a network namespace, and only there: %s", out.Stdout)
		}
	})
}

// hasScopes: the kernel keeps abstract sockets and signals apart (Landlock 6).
func (b *testBox) hasScopes() bool {
	for _, f := range b.runCommand(":").Report {
		if f.What == sandbox.Isolation && strings.Contains(f.How, "not signaled") {
			return true
		}
	}
	return false
}

func TestNoOtherProcessIsSignaledOrSeen(t *testing.T) {
	other := exec.Command("sleep", "300")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	eachBox(t, func(t *testing.T, b *testBox) {
		isolated := b.isEnforced(sandbox.Isolation)
		out := b.runCommand("kill -9 %d; cat /proc/%d/maps /proc/%d/mem; echo end", other.Process.Pid, other.Process.Pid, other.Process.Pid)
		if !strings.HasSuffix(string(out.Stdout), "end\n") || (isolated || b.hasScopes()) && other.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatalf("%s", out.Stdout)
		}
		if out := b.runCommand("ls -d /proc/[0-9]* | wc -l"); isolated {
			if n, err := strconv.Atoi(strings.TrimSpace(string(out.Stdout))); err != nil || n > 6 {
				t.Errorf("%s processes are seen", out.Stdout)
			}
		}
		// The helper is no part of what it shut in.
		if !isolated {
			return // without a namespace a command that is quick enough can end it: docs/sandbox.md
		}
		if out := b.runCommand("kill -9 $PPID; for t in /proc/$PPID/task/*; do kill -9 ${t##*/}; done; echo end"); string(out.Stdout[max(0, len(out.Stdout)-4):]) != "end\n" {
			t.Errorf("%+v", out)
		}
	})
}

func TestNoRightsAreHadOrGained(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		if !b.isEnforced(sandbox.Privileges) {
			return
		}
		got := string(b.runCommand("grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs)' /proc/self/status").Stdout)
		want := "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
		if os.Geteuid() != 0 && b.less.Namespaces { // an ordinary user's bounding set means nothing
			want = got
		}
		if got != want {
			t.Errorf("%s", got)
		}
		if out := b.probeInBox("mount %s", b.dir); out.Exit == 0 {
			t.Error("it mounted something")
		}
		if out := b.probeInBox("unshare"); out.Exit == 0 && !b.less.Namespaces {
			t.Error("it made namespaces of its own")
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		b.spec.Memory = 1 << 30 // the race detector alone takes a good part of it
		if out := b.probeInBox("alloc %d", 4<<30); out.Exit == 0 || strings.Contains(string(out.Stdout), "done") {
			t.Errorf("%d: %.300s", out.Exit, out.Stdout)
		}
		if out := b.probeInBox("alloc %d", 64<<20); out.Exit != 0 {
			t.Errorf("%d: %.300s", out.Exit, out.Stdout)
		}
	})
}

func TestPrintedOutputIsClippedInTheMiddle(t *testing.T) {
	b := &testBox{t: t, dir: t.TempDir(), spec: sandbox.Spec{Output: 4096}}
	out := b.runCommand("echo first; head -c 20000000 /dev/zero; echo last >&2")
	if !out.Cut || out.StdoutBytes != 20000011 || len(out.Stdout) > 4200 || !strings.HasPrefix(string(out.Stdout), "first\n") || !strings.HasSuffix(string(out.Stdout), "last\n") {
		t.Errorf("%d of %d bytes", len(out.Stdout), out.StdoutBytes)
	}
}

// TestSandboxReportNamesMissingProtections: without a part of the system nothing is claimed
// that it enforced.
func TestSandboxReportNamesMissingProtections(t *testing.T) {
	eachBox(t, func(t *testing.T, b *testBox) {
		r := b.runCommand(":").Report
		seen := map[string]bool{}
		for _, f := range r {
			if seen[f.What] || f.How == "" {
				t.Errorf("%+v", f)
			}
			seen[f.What] = true
		}
		for _, what := range []string{sandbox.Files, sandbox.Git, sandbox.Network, sandbox.Leftovers, sandbox.Isolation, sandbox.Privileges, sandbox.Memory, sandbox.Processes} {
			if !seen[what] {
				t.Errorf("nothing is said of %s: %s", what, r)
			}
		}
		if b.less.Landlock && !strings.Contains(r.Missing().String(), "files (no Landlock here") {
			t.Error(r.Missing())
		}
		if b.less.Namespaces && !strings.Contains(r.Missing().String(), "isolation (no namespaces: ") {
			t.Error(r.Missing())
		}
	})
	r, err := sandbox.Probe(t.Context())
	if err != nil || len(r) != 8 {
		t.Errorf("%v %v", r, err)
	}
	t.Logf("enforced here: %s; missing: %s", r, r.Missing())
}

// TestSandboxWorksForAnOrdinaryUser runs the tests above as an ordinary user, where
// they run as root: whose files are refused for other reasons.
func TestSandboxWorksForAnOrdinaryUser(t *testing.T) {
	// Not parallel: a process that another test starts while the copy is written holds it open, and a
	// program that is open for writing cannot start.
	if os.Geteuid() != 0 {
		return // then all of them did
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "troupe-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "test"), self, 0o755)
	}
	if err == nil {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run", "Persons|Environment|Network|Descriptor|Rights|ForkBomb|Survives|Background", "-sandbox.kills", "4")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
