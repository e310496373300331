//go:build chaos && linux

package failpoint

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Enabled reports whether this program was built with failpoints.
const Enabled = true

var failpointDir = os.Getenv(DirVariable)

func init() {
	if failpointDir == "" {
		return
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			runtime.GC()
			_ = replaceFile(StatsFile, fmt.Sprintf("%d", runtime.NumGoroutine())) // a reader sees that the file is missing
		}
	}()
}

// At marks a place; what names the subject that reaches it: the id of an own entry, a kind,
// or an address.
func At(place, what string) {
	if failpointDir == "" {
		return
	}
	kind := what
	if _, after, ok := strings.Cut(what, "!"); ok {
		kind, _, _ = strings.Cut(after, ".")
	}
	for _, name := range []string{place, place + "." + kind} {
		triggerFailpoint(name, what)
	}
}

// AtEntry marks a place that an encoded log entry reaches. An own entry contains its id.
func AtEntry(place string, data []byte) {
	if failpointDir == "" {
		return
	}
	before, after, ok := bytes.Cut(data, []byte("!"))
	if ok {
		from := before[bytes.LastIndexFunc(before, func(r rune) bool { return r < '-' || r > 'z' })+1:]
		end := bytes.IndexFunc(after, func(r rune) bool { return r < '-' || r > 'z' })
		At(place, string(from)+"!"+string(after[:max(end, 0)]))
	}
}

// triggerFailpoint executes a failpoint, if it is set. If several goroutines reach it at once, one of
// them takes it.
func triggerFailpoint(name, what string) {
	path := filepath.Join(failpointDir, name)
	action, err := os.ReadFile(path)
	if err != nil {
		return
	}
	again := string(action) == Panic || string(action) == KillAll
	if !again && os.Rename(path, path+".taken") != nil {
		return
	}
	if replaceFile(name+HitSuffix, what) != nil {
		return
	}
	switch string(action) {
	case Panic:
		panic("trap: " + name + " " + what)
	case Stop:
		signalSelf(syscall.SIGSTOP)
	case Kill, KillAll:
		signalSelf(syscall.SIGKILL)
	}
}

// signalSelf sends the signal to this very thread, so that the thread does not continue past this
// line.
func signalSelf(s syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// it cannot fail: this thread is there
	_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(s))
}

// replaceFile replaces a file atomically.
func replaceFile(name, text string) error {
	path := filepath.Join(failpointDir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
