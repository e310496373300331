package follow

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
)

// openTerminal returns the end of a new terminal that a program reads.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	fd := int(keyboard.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal
}

// isEchoing reports whether a terminal shows what is typed, and returns it by lines.
func isEchoing(t *testing.T, terminal *os.File) bool {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(terminal.Fd()), getMode)
	if err != nil {
		t.Fatal(err)
	}
	return mode.Lflag&unix.ECHO != 0 && mode.Lflag&unix.ICANON != 0
}

// A process that ends while a question comes to the screen leaves a terminal that echoes: whether the second Ctrl-C comes
// before the mode is switched, or after.
func TestTerminalEchoesAfterTheProcessEnds(t *testing.T) {
	terminal := openTerminal(t)
	acquire := func(sig *interrupt.Signals) (*terminalUser, error) {
		p := newTerminalUser(&console.Console{In: terminal, Err: terminal})
		_, err := p.acquire(newTerminalMode(terminal, func(bool) {}), true, sig)
		return p, err
	}
	p, err := acquire(&interrupt.Signals{})
	if err != nil || isEchoing(t, terminal) {
		t.Fatalf("%v, echo: %t", err, isEchoing(t, terminal))
	}
	if _, err := acquire(&interrupt.Signals{}); !errors.Is(err, errTaken) {
		t.Errorf("a second reader of the keys: %v", err)
	}
	if p.restoreTerminal(); !isEchoing(t, terminal) {
		t.Error("Ctrl-C after the switch leaves a terminal without echo")
	}
	ending := &interrupt.Signals{}
	ending.Ending.Store(true)
	if _, err := acquire(ending); err != nil || !isEchoing(t, terminal) {
		t.Errorf("Ctrl-C before the switch leaves a terminal without echo: %v", err)
	}
}
