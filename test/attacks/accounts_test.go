//go:build attacks && linux

package attacks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// attackVariable names the attack that this test binary plays when it is
	// started again under the attacker's account.
	attackVariable = "TROUPE_TEST_ATTACK"
	// commandTimeout ends a command of either account.
	commandTimeout = 60 * time.Second
)

var (
	// owner runs troupe; attacker is another person on the same machine.
	owner, attacker account
	// troupeBinary and nodeBinary are cmd/cli and cmd/node; selfBinary is a copy of
	// this test binary. Both accounts may execute them.
	troupeBinary, nodeBinary, selfBinary string
)

// attacks are functions that run in a process of the attacker. Files of this
// package add theirs in init. What a function prints is the test's to judge; an
// error becomes exit code 1.
var attacks = map[string]func(args []string) error{}

// account is a real account of this machine. Everybody may enter its home, as on
// many machines, so that troupe alone protects what it keeps there.
type account struct {
	name string
	uid  uint32
	gid  uint32
	home string
}

func TestMain(m *testing.M) {
	if name := os.Getenv(attackVariable); name != "" {
		if err := attacks[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code, err := runWithAccounts(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// runWithAccounts creates the accounts, builds the binaries, runs the tests and
// removes both.
func runWithAccounts(m *testing.M) (code int, err error) {
	if os.Getuid() != 0 {
		return 1, errors.New("two accounts are needed: run as root")
	}
	base, err := os.MkdirTemp("", "troupe-attacks-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(base)) }()
	if err := os.Chmod(base, 0o755); err != nil {
		return 1, err
	}
	for _, a := range []struct {
		account *account
		role    string
	}{{&owner, "owner"}, {&attacker, "attacker"}} {
		created, err := createAccount(base, a.role)
		if err != nil {
			return 1, err
		}
		*a.account = created
		defer func() { err = errors.Join(err, created.removeAccount()) }()
	}
	if err := buildBinaries(base); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func createAccount(base, role string) (account, error) {
	a := account{name: fmt.Sprintf("tr%s%d", role[:2], os.Getpid()), home: filepath.Join(base, role)}
	if out, err := exec.Command("useradd", "--no-create-home", "--home-dir", a.home, "--shell", "/bin/sh", a.name).CombinedOutput(); err != nil {
		return a, fmt.Errorf("useradd %s: %w: %s", a.name, err, out)
	}
	u, err := user.Lookup(a.name)
	if err != nil {
		return a, errors.Join(err, a.removeAccount())
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32) // 0 is refused below
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	a.uid, a.gid = uint32(uid), uint32(gid)
	if a.uid == 0 || a.gid == 0 {
		return a, errors.Join(fmt.Errorf("account %s has no uid of its own", a.name), a.removeAccount())
	}
	err = errors.Join(os.Mkdir(a.home, 0o755), os.Mkdir(filepath.Join(a.home, "tmp"), 0o700), os.Chown(a.home, int(a.uid), int(a.gid)),
		os.Chown(filepath.Join(a.home, "tmp"), int(a.uid), int(a.gid)))
	if err != nil {
		return a, errors.Join(err, a.removeAccount())
	}
	return a, nil
}

func (a account) removeAccount() error {
	if out, err := exec.Command("userdel", a.name).CombinedOutput(); err != nil {
		return fmt.Errorf("userdel %s: %w: %s", a.name, err, out)
	}
	return nil
}

func buildBinaries(base string) error {
	bin := filepath.Join(base, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	troupeBinary, nodeBinary, selfBinary = filepath.Join(bin, "troupe"), filepath.Join(bin, "troupe-node"), filepath.Join(bin, "attack")
	for path, pkg := range map[string]string{troupeBinary: "cli", nodeBinary: "node"} {
		cmd := exec.Command("go", "build", "-o", path, "github.com/troupe-run/troupe/cmd/"+pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", pkg, err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(selfBinary, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// stateDir is where the account's troupe keeps its state by default.
func (a account) stateDir() string { return filepath.Join(a.home, "state", "troupe") }

// newCommand is a process of the account, in its home, with nothing of the test's
// environment but PATH. The account's process group ends with the test.
func (a account) newCommand(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = a.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.home, "USER=" + a.name, "TMPDIR=" + filepath.Join(a.home, "tmp"),
		"XDG_STATE_HOME=" + filepath.Join(a.home, "state"), "XDG_CONFIG_HOME=" + filepath.Join(a.home, "config"), "NO_COLOR=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// attackCommand is one of attacks as a process of the attacker.
func attackCommand(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	if attacks[name] == nil {
		t.Fatalf("there is no attack %q", name)
	}
	cmd := attacker.newCommand(t, selfBinary, args...)
	cmd.Env = append(cmd.Env, attackVariable+"="+name)
	return cmd
}

// commandResult is what came of a command.
type commandResult struct {
	stdout, stderr string
	code           int
}

// runCommand runs a command to its end.
func runCommand(t *testing.T, cmd *exec.Cmd) commandResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return commandResult{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// startNode starts a troupe-node of the owner and waits until its state file is
// there. It ends with the test.
func startNode(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := owner.newCommand(t, nodeBinary, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()
	})
	waitFor(t, "the node's state file", func() bool {
		_, err := os.Stat(filepath.Join(owner.stateDir(), "node.json"))
		return err == nil
	})
	return cmd
}

// waitFor looks every 20 ms until done, for at most 30 s.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(30 * time.Second)
	for !done() {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s for %s", what)
		}
		<-tick.C
	}
}

// TestAttackOtherAccountCannotReadTheStateDirectory: the other account can neither list nor read
// anything below the state directory while a node serves it.
func TestAttackOtherAccountCannotReadTheStateDirectory(t *testing.T) {
	startNode(t)
	for _, path := range []string{"", "node.json", "owner.lock", "jetstream"} {
		r := runCommand(t, attacker.newCommand(t, "ls", filepath.Join(owner.stateDir(), path)))
		if r.code == 0 {
			t.Errorf("the attacker lists %q: %s", path, strings.TrimSpace(r.stdout))
		}
	}

	info, err := os.Stat(owner.stateDir())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the state directory has mode %o, want 700", info.Mode().Perm())
	}
}
