package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/mailbox"
)

const (
	// stampHeader holds the stamp of an imported entry in Unix nanoseconds. It counts for the size of the entry, which
	// a stream limits to mailbox.EntryBytesMax.
	stampHeader = "Troupe-Stamp"
	// importsAtOnce is how many logs are imported at once. Each waits for the acknowledgement of an entry before it
	// sends the next one, which names the place of that entry.
	importsAtOnce = 32
)

// Import implements mailbox.Store.
func (p *Post) Import(ctx context.Context, newest map[mailbox.Address]uint64, entries []mailbox.Message) error {
	logs := map[mailbox.Address][]mailbox.Message{}
	for _, m := range entries {
		logs[m.To] = append(logs[m.To], m)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var group sync.WaitGroup
	turns := make(chan struct{}, importsAtOnce)
	for at, log := range logs {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			if err := p.importLog(ctx, at, newest[at], log); err != nil {
				fail(fmt.Errorf("jetstream: import %s: %w", at, err))
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// importLog appends entries to one log, whose newest entry has the given place.
func (p *Post) importLog(ctx context.Context, at mailbox.Address, newest uint64, entries []mailbox.Message) error {
	subject, stream, err := p.pools.findHome(ctx, at)
	if err != nil {
		return err
	}
	for _, m := range entries {
		if newest, err = p.importEntry(ctx, stream, subject, newest, m); err != nil {
			return err
		}
	}
	return nil
}

func (p *Post) importEntry(ctx context.Context, stream *poolStream, subject string, newest uint64, m mailbox.Message) (place uint64, err error) {
	msg := &nats.Msg{Subject: subject, Data: m.Data, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(newest, 10)},
		stampHeader:                         {strconv.FormatInt(m.At*int64(time.Millisecond)+m.Nanos, 10)},
	}}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	reply, err := p.out.nc.RequestMsgWithContext(ctx, msg)
	if err != nil {
		return 0, err
	}
	return stream.acks.parseAck(reply)
}
