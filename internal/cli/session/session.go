package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/exit"
)

// AgentResults returns the agents of a result that may be missing.
func AgentResults(r *event.Result) []event.AgentResult {
	if r == nil {
		return nil
	}
	return r.Agents
}

// QuestionText returns the open question of an agent. That of a call whose outcome is unknown comes from the list of
// questions, to which the node adds what the call is.
func (s *Session) QuestionText(run string, m event.AgentResult) string {
	if m.Query.Reason == spec.ResumeUnsafe {
		list, err := s.Questions(s.Context)
		for _, q := range list {
			if err == nil && q.RunID == run && q.Agent == string(m.ID) && q.Query == m.Query.Query {
				return q.Question
			}
		}
	}
	return m.Query.Question
}

// NotRunningError is the error for a run to wait for that no node continues.
func (s *Session) NotRunningError(run string) error {
	return &exit.Failure{Code: exit.NoNode, Err: fmt.Errorf("no node runs %s", run), Hint: s.Command("run --resume "+run) + " continues it"}
}

// localNode is a node in this process: *node.Node. Commands see the interface, because the type would have the compiler
// generate the parts of a whole NATS server for each package that imports this one (2.8 s of CPU instead of 0.8).
type localNode interface {
	// UnfinishedRuns lists the runs of the index that have not ended.
	UnfinishedRuns(ctx context.Context) ([]client.RunInfo, error)
	// CountReplayed counts the recorded replies that were played, and all of them.
	CountReplayed() (played, all int)
	// HTTPURL is the address of its HTTP API, "" without one.
	HTTPURL() string
	// Drain lets the work in progress end, and begins no more.
	Drain(ctx context.Context) error
	Close() error
}

// Session is the node that receives the commands: a server elsewhere, the owner of the state
// directory, or a node in this process.
type Session struct {
	*client.Client
	Context      context.Context // ends with the node
	Address      string
	WatchCommand string    // the command that observes the server, without its arguments
	OwnerPID     int       // pid of the owner that this process connected to
	Node         localNode // a node of our own, or nil
	roots        []string
	flags        string // see Command

	mu   sync.Mutex
	live map[string]bool // runs with events since this process owns the directory
	stop func()

	closing sync.Once
	closed  error
}

// trackLiveRuns records which runs are live because a client has started or resumed them.
func (s *Session) trackLiveRuns(e client.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Kind {
	case event.KindShardTaken, event.KindShardReleased, event.KindShardUnreadable, event.KindShardReadable, event.KindLogsUnavailable, event.KindLogsAvailable, event.KindLogsLow, event.KindScheduleFired, event.KindScheduleMissed: // of no run
	case event.KindRunFinished:
		delete(s.live, e.Run)
	default:
		s.live[e.Run] = true
	}
}

// IsGone reports whether an error means that the node no longer exists.
func (s *Session) IsGone(err error) bool {
	return err != nil && (client.Lost(err) || errors.Is(context.Cause(s.Context), errNodeGone))
}

// isOwnerGone reports whether an error of a request says that the process that the session has joined is gone. One that
// answers is not.
func (s *Session) isOwnerGone(err error) bool {
	_, isAnswer := errors.AsType[*client.Error](err)
	return s.OwnerPID != 0 && s.IsGone(err) && !isAnswer
}

// IsElsewhere reports whether the node is behind a server that is not ours.
func (s *Session) IsElsewhere() bool { return s.Node == nil && s.OwnerPID == 0 }

// Close releases the session at once.
func (s *Session) Close() error {
	s.closing.Do(func() {
		if s.Node == nil {
			s.Client.Close()
			return
		}
		if s.stop != nil {
			s.stop()
		}
		s.closed = s.Node.Close()
	})
	return s.closed
}

// Leave gives up the session, but first waits, for a limited time, until the runs of others that live here have
// ended, and then for work for which no run waits: a hook at the end of a run may still run when the run has its
// result.
func (s *Session) Leave(ctx context.Context, own string) error {
	deadline := time.Now().Add(lingerTimeout)
	for s.Node != nil && time.Now().Before(deadline) && s.hostsOthers(ctx, own) {
		if Pause(ctx, lingerPause) != nil {
			break
		}
	}
	if s.Node != nil {
		drained, cancel := context.WithDeadline(ctx, deadline)
		_ = s.Node.Drain(drained) // what takes longer is cut off by Close
		cancel()
	}
	return s.Close()
}

// hostsOthers reports whether runs other than own are live here, and not only
// waiting for a person.
func (s *Session) hostsOthers(ctx context.Context, own string) bool {
	open, err := s.Node.UnfinishedRuns(ctx)
	if err != nil {
		return false
	}
	for _, i := range open {
		s.mu.Lock()
		live := s.live[i.RunID]
		s.mu.Unlock()
		if i.RunID == own || !live {
			continue
		}
		if info, err := s.State(ctx, i.RunID); err == nil && (info.State == client.RunLive || info.State == client.RunQueued) {
			return true
		}
	}
	return false
}
