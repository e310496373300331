package keeper

import (
	"math"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A keeper reads the description that a node has written: every attribute that it has comes back, and text that is none is an error.
func TestDescriptionComesBack(t *testing.T) {
	for _, d := range []Description{
		{Attr: &syscall.SysProcAttr{}},
		{Files: 2, Attr: &syscall.SysProcAttr{Setpgid: true}},
		{Files: 2, Attr: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN},
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: math.MaxInt32, Size: 1}, {ContainerID: -1, HostID: 7, Size: 3}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 5, HostID: 6, Size: 1}}}},
	} {
		got, err := ParseDescription(d.Numbers())
		if err != nil || !reflect.DeepEqual(got, d) {
			t.Errorf("%q is read as %+v, %v", d.Numbers(), got, err)
		}
	}
	good := Description{Files: 1, Attr: &syscall.SysProcAttr{Setsid: true, AmbientCaps: []uintptr{1}}}.Numbers()
	for _, text := range []string{"", "x", good[:len(good)-1], good + " 1", "-" + good, strings.Replace(good, " ", "  ", 1), "1 1 0 0 99999 1", "1 1 0 0 -1 0 0"} {
		if got, err := ParseDescription(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, text := range map[int64]string{0: "0", 7: "7", -7: "-7", 1234567890: "1234567890", math.MaxInt64: "9223372036854775807", math.MinInt64: "-9223372036854775808"} {
		if got := formatNumber(n); got != text {
			t.Errorf("%d is written as %s", n, got)
		}
	}
	for _, text := range []string{"", "-", " 1", "1x", "x1", "1  ", "9999999999999999999", "+1"} {
		if n, ok := parseNumber(text); ok {
			t.Errorf("%q is read as %d", text, n)
		}
	}
	if n, ok := parseNumber("-31337"); n != -31337 || !ok {
		t.Errorf("-31337 is read as %d, %v", n, ok)
	}
}

// The constants that this package writes out are those of package unix.
func TestCallsAreThoseOfTheSystem(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"SYS_CLOSE_RANGE", sysCloseRange, unix.SYS_CLOSE_RANGE}, {"CLOSE_RANGE_CLOEXEC", closeRangeCloexec, unix.CLOSE_RANGE_CLOEXEC},
		{"PR_SET_CHILD_SUBREAPER", setChildSubreaper, unix.PR_SET_CHILD_SUBREAPER}, {"P_ALL", waitAll, unix.P_ALL},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, want %d", c.name, c.got, c.want)
		}
	}
}

// Both ways to find the children of a process find one that runs, and not one that has ended.
func TestChildrenAreFound(t *testing.T) {
	running, ended := exec.Command("sleep", "60"), exec.Command("true")
	for _, cmd := range []*exec.Cmd{running, ended} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = running.Process.Kill()
		_, _ = running.Process.Wait()
	})
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	if !hasChildren() {
		t.Error("no children")
	}
	lists := map[string][]int{"of /proc": scannedChildren(os.Getpid())}
	if list, ok := listedChildren(); ok {
		lists["of the kernel"] = list
	}
	for from, list := range lists {
		if !slices.Contains(list, running.Process.Pid) || slices.Contains(list, ended.Process.Pid) {
			t.Errorf("the list %s is %v, want %d in it and not %d", from, list, running.Process.Pid, ended.Process.Pid)
		}
	}
}

// endWait is how long the child of TestEndChildrenWaitsWithoutSpinning takes to end.
const endWait = 500 * time.Millisecond

// A killed child may take long to end: EndChildren waits for it and leaves the processor to others. Here the child is a
// zombie until it is reaped.
func TestEndChildrenWaitsWithoutSpinning(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	done, before := make(chan struct{}), usedTime(t)
	go func() { defer close(done); EndChildren() }()
	select {
	case <-done:
		t.Error("EndChildren returned before its child was reaped")
	case <-time.After(endWait):
	}
	if used := usedTime(t) - before; used > endWait/4 {
		t.Errorf("a wait of %v took %v of CPU", endWait, used)
	}
	_, _ = child.Process.Wait()
	<-done
}

// usedTime returns the CPU time of this process.
func usedTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestStateAndParent(t *testing.T) {
	for stat, want := range map[string]int{"7 (sh) S 5 7 7 0": 5, "7 (a) Z 3 (b) S 12 0": 12, "": 0, "7 (": 0, "7 (sh)": 0, "7 (sh) S": 0, "7 (sh) S x": 0} {
		if _, got := stateAndParent(stat); got != want {
			t.Errorf("the parent in %q is %d, want %d", stat, got, want)
		}
	}
	if state, _ := stateAndParent("7 (a b) Z 1 0"); state != 'Z' {
		t.Errorf("the state is %c", state)
	}
}

// A keeper costs little because it runs before most packages are initialized: no package that this one imports waits for
// strconv or strings, for which almost all others wait.
func TestInitIsEarly(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for late := range strings.FieldsSeq("strconv strings bytes fmt reflect encoding/json path/filepath golang.org/x/sys/unix") {
		if slices.Contains(strings.Fields(string(out)), late) {
			t.Errorf("this package depends on %s, which is initialized late", late)
		}
	}
}
