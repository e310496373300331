package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	native "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// writerRace checks the assumption behind leases: of the writers that write after the same entry, at
// most one gets an acknowledgement, and the acknowledgement holds. Some writers have a subject of
// their own, and count how often the servers answer "wrong last sequence" to the only writer.
type writerRace struct {
	stop context.CancelFunc
	wait sync.WaitGroup
	ncs  []*nats.Conn

	post  *jetstream.Post
	heads map[string]mailbox.Address // by subject

	mu      sync.Mutex
	won     []wonWrite
	answers map[string]int
	landed  int // unanswered, and found to have landed
}

// inProcess is the code with which replicas answer a write while another write to the same position is under
// way, and at times the only writer: it is no verdict.
const inProcess = 10164

// wonWrite is a write that was acknowledged.
type wonWrite struct {
	subject, data string
	after, place  uint64
}

const (
	racePool  = "race"
	racers    = 4
	raceHeats = 2 // subjects that all writers race for
	raceBytes = 128 << 20
	// raceAnswer is how long a racer waits for an answer; it asks again then.
	raceAnswer = 5 * time.Second
	racePause  = 20 * time.Millisecond
)

func raceConfig(replicas int) jetstream.Config {
	return jetstream.Config{Pool: racePool, Shards: 1, Streams: 1, Replicas: replicas, BytesMax: raceBytes}
}

// newRace makes the pool and starts.
func newRace(b broker, replicas int) (*writerRace, error) {
	nc, err := bus.Connect(b.options(roleSetup, ""))
	if err != nil {
		return nil, err
	}
	post, err := jetstream.Open(context.Background(), nc, raceConfig(replicas))
	if err == nil {
		err = post.Close()
	}
	nc.Close()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &writerRace{stop: stop, answers: map[string]int{}, heads: map[string]mailbox.Address{}}
	for id := range racers {
		if err := r.startWriter(ctx, b, id); err != nil {
			return nil, errors.Join(err, r.closeAll())
		}
	}
	if r.post, err = jetstream.Open(ctx, r.ncs[0], raceConfig(replicas)); err != nil {
		return nil, errors.Join(err, r.closeAll())
	}
	return r, nil
}

// startWriter starts one writer, on its own connection.
func (r *writerRace) startWriter(ctx context.Context, b broker, id int) error {
	nc, err := bus.Connect(b.options(bus.RoleNode, ""))
	if err != nil {
		return err
	}
	r.ncs = append(r.ncs, nc)
	js, err := native.New(nc)
	if err != nil {
		return err
	}
	racers := []string{fmt.Sprintf("own%d", id)}
	for heat := range raceHeats {
		racers = append(racers, fmt.Sprintf("heat%d", heat))
	}
	for i, name := range racers {
		at := mailbox.At("race", name)
		subject, err := names.Names{}.BoxSubject(racePool, 0, at)
		if err != nil {
			return err
		}
		r.heads[subject] = at
		r.wait.Go(func() { r.run(ctx, js, subject, fmt.Sprint(id), i == 0) })
	}
	return nil
}

// run writes after the last entry, repeatedly.
func (r *writerRace) run(ctx context.Context, js native.JetStream, subject, id string, own bool) {
	stream := names.Names{}.BoxStream(racePool, 0)
	for n := 0; ctx.Err() == nil; n++ {
		if sleepFor(ctx, time.Duration(10+rand.IntN(60))*time.Millisecond) != nil {
			return
		}
		after, _, err := readLast(ctx, js, stream, subject)
		if err != nil {
			continue // no leader: it tries again
		}
		r.writeOnce(ctx, js, wonWrite{subject: subject, data: fmt.Sprintf("%s.%d after %d", id, n, after), after: after}, own)
	}
}

// writeOnce writes once, and repeats the same bytes until it gets a definite answer.
func (r *writerRace) writeOnce(ctx context.Context, js native.JetStream, c wonWrite, own bool) {
	for again := false; ctx.Err() == nil; again = true {
		within, cancel := context.WithTimeout(ctx, raceAnswer)
		ack, err := js.PublishMsg(within, &nats.Msg{Subject: c.subject, Data: []byte(c.data)}, native.WithExpectLastSequencePerSubject(c.after))
		cancel()
		var api *native.APIError
		switch {
		case err == nil:
			c.place = ack.Sequence
			r.noteAnswer("won", &c)
			return
		case !errors.As(err, &api):
			r.noteAnswer("no answer", nil)
			if sleepFor(ctx, racePause) != nil {
				return
			}
			continue
		case api.ErrorCode != inProcess:
			r.checkRefused(ctx, js, c, again, fmt.Sprint(api.ErrorCode))
			return
		}
		if own {
			r.noteAnswer("10164 to the only writer", nil)
		} else {
			r.noteAnswer("10164", nil)
		}
		if sleepFor(ctx, racePause) != nil {
			return
		}
	}
}

// checkRefused checks whether a refused write had landed before.
func (r *writerRace) checkRefused(ctx context.Context, js native.JetStream, c wonWrite, again bool, code string) {
	r.noteAnswer(code, nil)
	if !again {
		return
	}
	place, data, err := readLast(ctx, js, names.Names{}.BoxStream(racePool, 0), c.subject)
	if err == nil && data == c.data {
		c.place = place
		r.mu.Lock()
		r.landed++
		r.mu.Unlock()
		r.noteAnswer("won", &c)
	}
}

func (r *writerRace) noteAnswer(answer string, won *wonWrite) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[answer]++
	if won != nil {
		r.won = append(r.won, *won)
	}
}

// readLast reads the last entry from the leader.
func readLast(ctx context.Context, js native.JetStream, stream, subject string) (place uint64, data string, err error) {
	within, cancel := context.WithTimeout(ctx, raceAnswer)
	defer cancel()
	s, err := js.Stream(within, stream)
	if err != nil {
		return 0, "", err
	}
	m, err := s.GetLastMsgForSubject(within, subject)
	if errors.Is(err, native.ErrMsgNotFound) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	return m.Sequence, string(m.Data), nil
}

func (r *writerRace) endWriters() {
	r.stop()
	r.wait.Wait()
}

func (r *writerRace) closeAll() error {
	if r == nil {
		return nil
	}
	r.endWriters()
	var err error
	if r.post != nil {
		err = r.post.Close()
	}
	for _, nc := range r.ncs {
		nc.Close()
	}
	return err
}

// compareWrites compares the stored entries with the acknowledged ones.
func (r *writerRace) compareWrites() (text string, bad error) {
	there, forks := map[uint64]wonWrite{}, 0
	for subject, at := range r.heads {
		head := uint64(0)
		ctx, cancel := context.WithTimeout(context.Background(), serverPatience)
		err := r.post.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
			var id string
			var after uint64
			if _, err := fmt.Sscanf(string(m.Data), "%s after %d", &id, &after); err != nil || after != head {
				forks++
			}
			head = m.Place
			there[m.Place] = wonWrite{subject: subject, data: string(m.Data)}
			return nil
		})
		cancel()
		if err != nil {
			return "", fmt.Errorf("read %s: %w", at, err)
		}
	}
	lost, twice, places := 0, 0, map[uint64]bool{}
	for _, c := range r.won {
		if got := there[c.place]; got.data != c.data || got.subject != c.subject {
			lost++
		}
		if places[c.place] {
			twice++
		}
		places[c.place] = true
	}
	text = fmt.Sprintf("race: %d writes won, %d stored, %d lost, %d places won twice, %d out of the chain; answers %v, %d landed without one",
		len(r.won), len(there), lost, twice, forks, r.answers, r.landed)
	if lost+twice+forks > 0 || len(r.won) == 0 {
		bad = fmt.Errorf("%w: %s", errBroken, text)
	}
	return text, bad
}
