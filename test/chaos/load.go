package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/troupe-run/troupe/agent"
	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/agent/spec"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// load is the runs of a cluster, some at a time, and the simulated user who answers them.
type load struct {
	t    *testCluster
	wait sync.WaitGroup
	// ctx ends when the runs are abandoned.
	ctx     context.Context
	abandon context.CancelFunc

	mu       sync.Mutex
	begun    int
	enough   bool // no more faults come
	runs     []*finishedRun
	approved map[string]int // how often the user approved a repetition, by key
	seen     shardView
}

// finishedRun is one run that has ended, or was abandoned.
type finishedRun struct {
	id     string
	took   time.Duration
	result *event.Result
	asked  int // questions about calls of unknown outcome
	said   map[string]client.AnswerRequest

	canceled bool
	ended    time.Time // when the client learned that it ended
	lines    int       // its effects by then
}

// runPatience is how long a run may take, including faults.
const runPatience = 10 * time.Minute

func newLoad(t *testCluster) *load {
	l := &load{t: t, approved: map[string]int{}}
	l.ctx, l.abandon = context.WithCancel(context.Background())
	return l
}

func (l *load) beginRuns() {
	for range l.t.o.atOnce {
		l.wait.Go(func() {
			for l.wantsMore() {
				r := l.runOne(l.pickDistantID())
				l.mu.Lock()
				l.runs = append(l.runs, r)
				l.mu.Unlock()
			}
		})
	}
}

func (l *load) wantsMore() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun++
	return l.ctx.Err() == nil && (!l.enough || l.begun <= l.t.o.runs)
}

func (l *load) countEnded() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs)
}

func (l *load) awaitEnd() {
	l.mu.Lock()
	l.enough = true
	l.mu.Unlock()
	l.wait.Wait()
}

// runOne starts one run and waits for its end.
func (l *load) runOne(id string) *finishedRun {
	ctx, cancel := context.WithTimeout(l.ctx, runPatience)
	defer cancel()
	r := &finishedRun{id: id, said: map[string]client.AnswerRequest{}}
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	// A command is sent up to 5 times: repeating it must be harmless (FM12).
	for range 1 + rand.IntN(5) {
		err := repeatRequest(ctx, func() error {
			_, err := l.t.client.Run(ctx, l.newRequest(id))
			return err
		})
		if err != nil {
			l.t.found.addOf(id, "run %s was not accepted: %v", id, err)
			return r
		}
	}
	l.planCancels(ctx, r)
	for {
		var info client.RunInfo
		err := repeatRequest(ctx, func() (err error) {
			info, err = l.t.client.Wait(ctx, id)
			return err
		})
		if err != nil {
			l.t.found.addOf(id, "run %s did not end: %v; it stands so: %s", id, err, l.lastEntries(id))
			return r
		}
		if info.State == client.RunFinished {
			r.result = info.Result
			l.noteStopped(r)
			return r
		}
		if err := l.answerQuestions(ctx, r, info); err != nil {
			l.t.found.addOf(id, "run %s: %v", id, err)
			return r
		}
	}
}

// runTokens are more than a run needs.
const runTokens = 2_000_000

// newRequest returns the request for a run.
func (l *load) newRequest(id string) client.RunRequest {
	return client.RunRequest{RunID: id, Prompt: "count for " + tag + id, Agent: "boss", Agents: l.t.files.agentsDir(),
		Dir: l.t.files.workDir(), Model: "anthropic/double", MaxTokens: l.t.o.tokens}
}

// repeatRequest repeats a request until a node answers.
func repeatRequest(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		var refused *client.Error
		busy := errors.As(err, &refused) && (refused.Code == client.CodeLimit || refused.Code == client.CodeLogs)
		if err == nil || !busy && !client.Lost(err) || ctx.Err() != nil {
			return err
		}
		if sleepFor(ctx, poll+rand.N(10*poll)) != nil {
			return err
		}
	}
}

var errQuestion = errors.New("a person was asked without a reason")

// answerQuestions answers the questions of the agents of a parked run.
func (l *load) answerQuestions(ctx context.Context, r *finishedRun, info client.RunInfo) error {
	for _, a := range info.Result.Agents {
		if a.Query == nil {
			continue
		}
		q := a.Query
		if q.Reason != spec.ResumeUnsafe || q.Call == "" {
			return fmt.Errorf("%w: %s %+v", errQuestion, a.ID, *q)
		}
		at := mailbox.At(r.id, string(a.ID))
		begun, returned, err := l.readCall(ctx, at, q.Call)
		if err != nil {
			return err
		}
		if begun == 0 {
			return fmt.Errorf("%w: %s was never begun", errQuestion, q.Query)
		}
		if returned || l.t.observer.userWaits(string(at)) {
			continue // it is resolved, or will be
		}
		req := l.decideAnswer(r, string(a.ID), *q)
		for range 1 + rand.IntN(5) {
			err = errors.Join(err, repeatRequest(ctx, func() error { return l.t.client.Answer(ctx, req) }))
		}
		if isGone(err) {
			continue // a late result was faster
		}
		if err != nil {
			return fmt.Errorf("answer %s: %w", q.Query, err)
		}
	}
	return sleepFor(ctx, poll)
}

// isGone reports that the subject of a command no longer exists.
func isGone(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && (refused.Code == client.CodeNotFound || refused.Code == client.CodeConflict)
}

// decideAnswer returns the user's answer about a call, by the ledger. A question that is asked again
// because its answer was not read yet gets the same answer.
func (l *load) decideAnswer(r *finishedRun, asker string, q event.OpenQuery) client.AnswerRequest {
	id := asker + "." + q.Query
	if req, ok := r.said[id]; ok {
		return req
	}
	r.asked++
	key := fmt.Sprintf("%s.%s.%s", r.id, asker, q.Call)
	req := client.AnswerRequest{RunID: r.id, Request: client.NewID(), Agent: asker, Query: q.Query, Decision: "text", Text: "counted"}
	if !l.t.files.hasEffect(key) {
		req.Decision = "approve"
		l.mu.Lock()
		l.approved[key]++
		l.mu.Unlock()
	}
	r.said[id] = req
	return req
}

// countAllowed returns how often the user approved the repetition of a call.
func (l *load) countAllowed(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.approved[key]
}

// readCall reads from a log how often a call was begun, and whether it returned.
func (l *load) readCall(ctx context.Context, at mailbox.Address, call string) (begun int, returned bool, err error) {
	list, err := l.readLog(ctx, at)
	for _, s := range list {
		for _, f := range s.decodeFacts() {
			switch f := f.(type) {
			case agent.Started:
				if f.Call == call {
					begun++
				}
			case agent.Returned:
				returned = returned || f.Call == call
			}
		}
	}
	return begun, returned, err
}

// readLog reads one log, in whatever pool it is.
func (l *load) readLog(ctx context.Context, at mailbox.Address) (list storedLogs, err error) {
	err = repeatRead(ctx, func() error {
		list = nil
		return l.t.withPost(func(post *jetstream.Post) error {
			return post.ReadRun(ctx, at.Run(), func(m mailbox.Message) error {
				if m.To.Bare() != at {
					return nil
				}
				entry, err := mailbox.Decode(m.Data)
				list = append(list, storedLog{m.To, m.At, entry})
				return err
			})
		})
	})
	return list, err
}

// readAttempts is how often a read of the judge is tried. Each attempt may take the 5 s of a request: together they
// outlive the election of a leader.
const readAttempts = 6

// repeatRead repeats a read that no server answered.
func repeatRead(ctx context.Context, read func() error) (err error) {
	for range readAttempts {
		err = read()
		if ctx.Err() != nil || !bus.IsUnavailable(err) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if sleepFor(ctx, poll) != nil {
			return err
		}
	}
	return err
}

// withPost opens the logs for one call.
func (t *testCluster) withPost(use func(*jetstream.Post) error) error {
	nc, err := bus.Connect(t.broker.options(bus.RoleNode, ""))
	if err != nil {
		return err
	}
	defer nc.Close()
	post, err := jetstream.Open(context.Background(), nc, jetstream.Config{Others: true})
	if err != nil {
		return err
	}
	return errors.Join(use(post), post.Close())
}

// lastEntries returns the last entries of a run that did not end.
func (l *load) lastEntries(id string) string {
	if l.ctx.Err() != nil {
		return "it was given up, like all"
	}
	var lines []string
	err := l.t.withPost(func(post *jetstream.Post) error {
		last := map[mailbox.Address][]string{}
		err := post.ReadRun(context.Background(), id, func(m mailbox.Message) error {
			entry, err := mailbox.Decode(m.Data)
			for _, item := range entry.Items {
				last[m.To] = append(last[m.To], item.Kind)
			}
			return err
		})
		for at, kinds := range last {
			lines = append(lines, fmt.Sprintf("%s: … %s", at.Agent(), strings.Join(kinds[max(0, len(kinds)-shown):], " ")))
		}
		return err
	})
	if err != nil {
		return err.Error()
	}
	return strings.Join(lines, "; ")
}

// shown is how many of the last entries of a log are printed.
const shown = 6

// hasEffect reports whether an effect is in the ledger.
func (s testDir) hasEffect(key string) bool {
	data, err := os.ReadFile(s.ledger)
	return err == nil && strings.Contains("\n"+string(data), "\n"+key+"\n")
}
