package node

import (
	"cmp"
	"context"
	"sync"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/internal/bus/statedir"
	"github.com/troupe-run/troupe/internal/logstore/jetstream"
	"github.com/troupe-run/troupe/internal/logstore/local"
	"github.com/troupe-run/troupe/mailbox"
)

// storage is what a node has opened of its stores.
type storage struct {
	logs    mailbox.Store
	streams *jetstream.Post // logs, if they are in JetStream; otherwise nil
	buckets *bus.Buckets
	answers natsjs.Consumer // of answers that wait for a node; nil: none do
}

// storageOpener opens the logs and the buckets of a node.
type storageOpener struct {
	cfg          Config
	names        names.Names
	embedded     localserver.Server // nil: nodes share a server
	conn, reader *nats.Conn
	makers       []*nats.Conn // more connections that create buckets
	stalled      func(mailbox.Stall)
	awaitLeaders func(ctx context.Context, do func(context.Context) error) error
}

// open opens the stores, once the server has leaders for them.
func (o storageOpener) open(ctx context.Context) (s storage, err error) {
	var logs, blobs int64
	if o.embedded != nil {
		logs, blobs = o.embedded.StoreShares() // of a disk that may be small
	}
	inFiles := o.embedded != nil && o.embedded.LogStore() == statedir.LogsInFiles
	var opening sync.WaitGroup
	var files *local.Store
	var filesErr error
	if inFiles { // at the same time as the server creates the buckets: both wait for the disk
		opening.Go(func() {
			files, filesErr = local.Open(ctx, local.Config{Dir: statedir.LogsDir(o.embedded.StateDir()), BytesMax: uint64(logs), Lazy: o.cfg.Lazy,
				Stalled: o.stalled, Logger: o.cfg.Logger})
		})
	}
	err = o.awaitLeaders(ctx, func(ctx context.Context) (err error) {
		if o.embedded == nil {
			if err = bus.CheckJetStream(ctx, o.conn); err != nil {
				return err
			}
		}
		if s.logs == nil && !inFiles {
			if s.streams, err = o.openStreams(ctx, logs); err != nil {
				return err
			}
			s.logs = s.streams
		}
		s.buckets, err = bus.ConnectBuckets(ctx, o.conn, bus.BucketConfig{Names: o.names, BlobBytesMax: blobs, Alone: o.embedded != nil, Makers: o.makers})
		if err == nil && o.embedded == nil && !o.cfg.NoActors { // an embedded server is up only with its node
			s.answers, err = bus.ReadAnswers(ctx, o.conn, o.names)
		}
		return err
	})
	if opening.Wait(); files != nil {
		s.logs = files
	}
	return s, cmp.Or(filesErr, err)
}

// openStreams opens the logs in JetStream.
func (o storageOpener) openStreams(ctx context.Context, bytesMax int64) (*jetstream.Post, error) {
	return jetstream.Open(ctx, o.conn, jetstream.Config{Names: o.names, Reader: o.reader, BytesMax: bytesMax, Others: o.embedded == nil,
		Stalled: o.stalled, Logger: o.cfg.Logger})
}

// openStorage opens the stores of a node and checks what their server promises.
func openStorage(ctx context.Context, n *Node) (*bus.Buckets, error) {
	s, err := storageOpener{n.cfg, n.names, n.embedded, n.logConn, n.readerConn, []*nats.Conn{n.readerConn, n.leaseConn}, n.logHealth.reportStall, n.awaitLeaders}.open(ctx)
	n.post, n.streams, n.answers = s.logs, s.streams, s.answers
	if err != nil {
		return nil, err
	}
	n.post = wrapLogs(ctx, n.post)
	prover := serverProver{n.cfg, n.names, n.embedded, n.logConn, n.streams, n.post}
	return s.buckets, n.awaitLeaders(ctx, func(ctx context.Context) (err error) {
		n.serverProof, err = prover.prove(ctx)
		return err
	})
}
