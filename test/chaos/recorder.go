package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/mailbox"
)

// recorder appends to logs of its own pool, with the code that nodes use, and records outside of
// the servers what they acknowledged and how long it took.
type recorder struct {
	nc   *nats.Conn
	post *jetstream.Post
	stop context.CancelFunc
	wait sync.WaitGroup

	mu    sync.Mutex
	marks map[mailbox.Address][]acknowledgement
	took  []slowAppend
}

// acknowledgement is one acknowledgement.
type acknowledgement struct {
	data  string
	place uint64
}

// slowAppend is how long one append took, and when it began.
type slowAppend struct {
	began time.Time
	took  time.Duration
}

// Numbers of the recorder.
const (
	recorderPool  = "recorder"
	writers       = 6
	writersPause  = 20 * time.Millisecond // the nodes make the load
	recorderBytes = 2 << 30               // an hour of its entries: nodes refuse runs when any pool is nearly full
)

func recorderConfig(replicas int) jetstream.Config {
	return jetstream.Config{Pool: recorderPool, Shards: 4, Streams: 2, Replicas: replicas, BytesMax: recorderBytes}
}

// startRecorder makes the pool and begins to append.
func startRecorder(b broker, replicas int) (*recorder, error) {
	nc, err := bus.Connect(b.options(roleSetup, ""))
	if err != nil {
		return nil, err
	}
	made, err := jetstream.Open(context.Background(), nc, recorderConfig(replicas))
	if err == nil {
		err = made.Close()
	}
	nc.Close()
	if err != nil {
		return nil, err
	}
	r := &recorder{marks: map[mailbox.Address][]acknowledgement{}}
	run := client.NewID()
	if r.nc, err = bus.Connect(b.options(bus.RoleNode, "")); err != nil {
		return nil, err
	}
	if r.post, err = jetstream.Open(context.Background(), r.nc, recorderConfig(replicas)); err != nil {
		r.nc.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	for w := range writers {
		r.wait.Go(func() { r.appendChain(ctx, mailbox.At(run, fmt.Sprintf("w%d", w))) })
	}
	return r, nil
}

// appendChain appends entries one after the other; each holds the hash of the entry before.
func (r *recorder) appendChain(ctx context.Context, at mailbox.Address) {
	before := ""
	for n := 1; ctx.Err() == nil; n++ {
		data := fmt.Sprintf("%d %s %s", n, before, filler)
		began := time.Now()
		type answer struct {
			place uint64
			err   error
		}
		done := make(chan answer, 1)
		r.post.Append(ctx, at, []byte(data), func(place uint64, err error) { done <- answer{place, err} })
		a := <-done
		if a.err != nil {
			return // it was stopped: otherwise appends wait for ever
		}
		r.mu.Lock()
		r.marks[at] = append(r.marks[at], acknowledgement{data, a.place})
		r.took = append(r.took, slowAppend{began, time.Since(began)})
		r.mu.Unlock()
		before = hashOf(data)
		if sleepFor(ctx, writersPause) != nil {
			return
		}
	}
}

// filler makes an entry about as large as those of a run.
var filler = strings.Repeat("x", 500)

func hashOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:8])
}

// endAppends stops the appends. An append that is not acknowledged by then does not count.
func (r *recorder) endAppends() {
	r.stop()
	r.wait.Wait()
}

func (r *recorder) closeAll() error {
	if r == nil {
		return nil
	}
	r.endAppends()
	err := r.post.Close()
	r.nc.Close()
	return err
}

// keptAppends is the outcome of the acknowledged appends.
type keptAppends struct {
	acknowledged, stored, lost, twice, broken int
}

// compareLogs checks the logs against what was acknowledged: each entry at its position, and each log
// a chain.
func (r *recorder) compareLogs(post *jetstream.Post) (k keptAppends, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, marks := range r.marks {
		k.acknowledged += len(marks)
	}
	for at, marks := range r.marks {
		places, chain := map[uint64]string{}, []string{}
		ctx, cancel := context.WithTimeout(context.Background(), serverPatience)
		err := post.Read(ctx, at, 0, 0, func(m mailbox.Message) error {
			places[m.Place] = string(m.Data)
			k.stored++
			if len(chain) > 0 && slices.Contains(chain[max(0, len(chain)-3):], string(m.Data)) {
				k.twice++ // sent again before the answer came: readers drop it
				return nil
			}
			chain = append(chain, string(m.Data))
			return nil
		})
		cancel()
		if err != nil {
			return k, errors.Join(err, fmt.Errorf("read %s", at))
		}
		for _, m := range marks {
			if places[m.place] != m.data {
				k.lost++
			}
		}
		for i, data := range chain {
			before := ""
			if i > 0 {
				before = hashOf(chain[i-1])
			}
			if data != fmt.Sprintf("%d %s %s", i+1, before, filler) {
				k.broken++
			}
		}
	}
	return k, nil
}

// judgeLogs compares the logs with what was acknowledged. It returns a summary, and an error if entries are wrong.
func (r *recorder) judgeLogs() (text string, bad error) {
	k, err := r.compareLogs(r.post)
	if err != nil {
		return "", err
	}
	text = fmt.Sprintf("recorder: %d appends acknowledged, %d stored, %d lost, %d stored twice, %d chains broken; %s",
		k.acknowledged, k.stored, k.lost, k.twice, k.broken, r.describeTimes())
	if k.lost+k.broken > 0 || k.acknowledged == 0 {
		bad = fmt.Errorf("%w: %s", errBroken, text)
	}
	return text, bad
}

// describeTimes returns how long appends took.
func (r *recorder) describeTimes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []time.Duration
	for _, s := range r.took {
		all = append(all, s.took)
	}
	slices.Sort(all)
	return fmt.Sprintf("an append took p50 %v, p99 %v, longest %v", quantile(all, 0.5), quantile(all, 0.99), quantile(all, 1))
}

// longestAppends returns the longest append of any writer that was under way at each moment or shortly
// after it.
func (r *recorder) longestAppends(moments []time.Time, while time.Duration) (list []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range moments {
		longest := time.Duration(0)
		for _, s := range r.took {
			if s.began.Before(at.Add(while)) && s.began.Add(s.took).After(at) {
				longest = max(longest, s.took)
			}
		}
		list = append(list, longest)
	}
	slices.Sort(list)
	return list
}
