package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog forwards the server's log, with its less important lines at debug level, and
// keeps the error that would have ended the process.
type serverLog struct {
	*slog.Logger
	failed    func(error) // receives the failure of a store that is off
	mu        sync.Mutex
	fatalLine string
}

// checkLine reports a line that says that the store is off.
func (l *serverLog) checkLine(line string) string {
	if isStoreFailure(line) {
		l.failed(errors.New(line))
	}
	return line
}

func (l *serverLog) fatalError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatalLine
}

func (l *serverLog) Noticef(format string, v ...any) { l.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, "Plaintext passwords") {
		return // the passwords are random, new at each start, and never leave this machine
	}
	l.Warn(l.checkLine(fmt.Sprintf(format, v...)))
}
func (l *serverLog) Errorf(format string, v ...any) { l.Error(l.checkLine(fmt.Sprintf(format, v...))) }
func (l *serverLog) Debugf(string, ...any)          {}
func (l *serverLog) Tracef(string, ...any)          {}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatalLine = fmt.Sprintf(format, v...)
	l.Error(l.fatalLine)
}
