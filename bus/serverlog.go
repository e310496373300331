package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// serverLog passes the server's log on, its chatter as debug, and keeps what
// it would have died of.
type serverLog struct {
	*slog.Logger
	failed func(error) // hears of a store that is off
	mu     sync.Mutex
	last   string
}

// hear passes on what says that the store is off.
func (l *serverLog) hear(line string) string {
	if storeFailed(line) {
		l.failed(errors.New(line))
	}
	return line
}

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *serverLog) Noticef(format string, v ...any) { l.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Warnf(format string, v ...any) {
	if strings.HasPrefix(format, "Plaintext passwords") {
		return // ours are random, new at each start, and never leave this machine
	}
	l.Warn(l.hear(fmt.Sprintf(format, v...)))
}
func (l *serverLog) Errorf(format string, v ...any) { l.Error(l.hear(fmt.Sprintf(format, v...))) }
func (l *serverLog) Debugf(string, ...any)          {}
func (l *serverLog) Tracef(string, ...any)          {}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Sprintf(format, v...)
	l.Error(l.last)
}
