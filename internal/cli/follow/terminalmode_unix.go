//go:build linux || darwin

package follow

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/muesli/cancelreader"
	"golang.org/x/sys/unix"
)

// terminalMode makes a terminal return each key at once and show none. The terminal keeps its signals (Ctrl-C, Ctrl-Z)
// and its line breaks, so other output stays readable.
type terminalMode struct {
	file *os.File
	// continued is called when the process continues after a stop: with the keys on again, or in the background, where it
	// must not read the terminal.
	continued func(background bool)

	mu      sync.Mutex
	before  *unix.Termios // the mode to go back to; nil: the terminal is in it
	keys    bool          // acquireKeys has switched it
	line    bool          // a line is typed: see readLine
	signals chan os.Signal
}

func newTerminalMode(f *os.File, continued func(background bool)) *terminalMode {
	return &terminalMode{file: f, continued: continued}
}

// acquireLines begins to read a terminal by lines. It drops what was typed before. Where another program reads the keys it
// returns errTaken: the question of that program comes first, and the mode that it found is the one to go back to.
func (m *terminalMode) acquireLines() error { return m.acquire(m.beginLines) }

// acquireKeys is acquireLines for each key at once. Until restore it also handles the signals that would leave the terminal
// in this mode. After an error other than errTaken and errBackground the terminal is read by lines, and what was typed
// before is dropped, too.
func (m *terminalMode) acquireKeys() error { return m.acquire(m.beginKeys) }

func (m *terminalMode) acquire(begin func(now *unix.Termios) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isForeground() {
		return errBackground
	}
	defer lockTerminals()()
	now, err := unix.IoctlGetTermios(int(m.file.Fd()), getMode)
	if err != nil {
		return fmt.Errorf("mode of the terminal: %w", err)
	}
	if now.Lflag&unix.ICANON == 0 {
		return errTaken
	}
	return begin(now)
}

// drop sets a mode, and drops what was typed.
func (m *terminalMode) drop(mode *unix.Termios) error {
	if err := unix.IoctlSetTermios(int(m.file.Fd()), setAndDrop, mode); err != nil {
		return fmt.Errorf("mode of the terminal: %w", err)
	}
	return nil
}

// beginLines leaves the mode as it is, and learns when the process continues in the background. The caller holds mu.
func (m *terminalMode) beginLines(now *unix.Termios) error {
	if err := m.drop(now); err != nil {
		return err
	}
	m.signals = make(chan os.Signal, 4)
	signal.Notify(m.signals, syscall.SIGCONT)
	go m.handleSignals(m.signals)
	return nil
}

// beginKeys switches the mode from now, and handles signals. The caller holds mu.
func (m *terminalMode) beginKeys(now *unix.Termios) error {
	if err := m.enter(setAndDrop); err != nil {
		return errors.Join(err, m.drop(now))
	}
	m.keys = true
	modesOn.Add(1)
	stopsLater.Do(func() { go stopWithoutKeys() })
	m.signals = make(chan os.Signal, 4)
	signal.Notify(m.signals, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGHUP, syscall.SIGQUIT)
	go m.handleSignals(m.signals)
	return nil
}

const (
	lockTries = 20
	lockPause = 5 * time.Millisecond
)

// lockTerminals lets one program at a time look at the mode of a terminal and change it. It locks the device of the
// controlling terminal, opened anew: programs of one shell share what they inherited. Another account may hold that lock
// for long, and some systems have none there: after lockTries it goes on without.
func lockTerminals() (unlock func()) {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return func() {}
	}
	for range lockTries {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		time.Sleep(lockPause)
	}
	return func() { _ = f.Close() } // closing unlocks
}

// enter switches the mode by a request: setMode or setAndDrop. The caller holds mu.
func (m *terminalMode) enter(request uint) error {
	before, err := unix.IoctlGetTermios(int(m.file.Fd()), getMode)
	if err != nil {
		return fmt.Errorf("mode of the terminal: %w", err)
	}
	mode := *before
	if m.line {
		mode.Cc[unix.VEOL] = keyEscape
	} else {
		mode.Lflag &^= unix.ICANON | unix.ECHO
		mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	}
	if err := unix.IoctlSetTermios(int(m.file.Fd()), request, &mode); err != nil {
		return fmt.Errorf("mode of the terminal: %w", err)
	}
	m.before = before
	return nil
}

// request is how the mode is switched when the process continues: what was typed of a line stays.
func (m *terminalMode) request() uint {
	if m.line {
		return setMode
	}
	return setAndDrop
}

// readLine lets a terminal that returned keys return the next line. Esc ends the line, too.
func (m *terminalMode) readLine() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isForeground() {
		return // to set the mode would stop the process
	}
	m.leave()
	m.line = true
	_ = m.enter(setMode) // without it Enter ends the line
}

// leave puts the terminal back. The caller holds mu.
func (m *terminalMode) leave() {
	if m.before != nil {
		_ = unix.IoctlSetTermios(int(m.file.Fd()), setMode, m.before) // a terminal that is gone needs none
		m.before = nil
	}
}

// restore puts the terminal back as acquireKeys found it. Any goroutine may call it, also twice.
func (m *terminalMode) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave()
	if m.signals != nil {
		signal.Stop(m.signals)
		close(m.signals)
		m.signals = nil
		if m.keys {
			modesOn.Add(-1)
		}
	}
}

var (
	modesOn    atomic.Int32 // terminals that return keys
	stopsLater sync.Once
)

// stopWithoutKeys lets Ctrl-Z stop the process also when no terminal returns keys any more: once SIGTSTP was caught, Go
// does not put back its default.
func stopWithoutKeys() {
	stops := make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTSTP)
	for s := range stops {
		if modesOn.Load() == 0 {
			deliver(s)
		}
	}
}

// stopTime is how long a signal may take to stop or end the process. A process that ignores it goes on.
const stopTime = time.Second

// deliver does to the process what a signal does by default.
func deliver(s os.Signal) {
	if s == syscall.SIGTSTP {
		if session, err := unix.Getsid(0); err != nil || session == unix.Getpgrp() {
			return // no shell of this session would continue the process
		}
		s = syscall.SIGSTOP // see stopWithoutKeys
	} else {
		signal.Reset(s)
	}
	_ = syscall.Kill(os.Getpid(), s.(syscall.Signal)) // a process may always signal itself
}

// handleSignals puts the terminal back before a signal stops or ends the process, and takes the keys again when the
// process continues.
func (m *terminalMode) handleSignals(signals chan os.Signal) {
	for s := range signals {
		if s != syscall.SIGCONT {
			m.mu.Lock()
			m.leave()
			m.mu.Unlock()
			deliver(s)
			select {
			case _, ok := <-signals:
				if !ok {
					return
				}
			case <-time.After(stopTime):
			}
		}
		m.mu.Lock()
		if m.signals != signals {
			m.mu.Unlock()
			return
		}
		background := !m.isForeground()
		if background {
			m.before = nil // the shell has the terminal, in a mode of its own
		}
		var err error
		if m.keys {
			signal.Notify(signals, syscall.SIGHUP, syscall.SIGQUIT)
		}
		if m.keys && !background {
			m.leave()
			err = m.enter(m.request())
		}
		m.mu.Unlock()
		if err == nil && (m.keys || background) {
			m.continued(background)
		}
	}
}

// isForeground reports whether the process may change the mode of the terminal without being stopped.
func (m *terminalMode) isForeground() bool {
	group, err := unix.IoctlGetInt(int(m.file.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

func newKeyReader(f *os.File) (keyReader, error) { return cancelreader.NewReader(f) }
