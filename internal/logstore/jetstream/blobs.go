package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	blobChunkBytes = 512 << 10              // of a blob in one message
	blobTries      = 4                      // to read a blob that is not found
	blobPause      = 100 * time.Millisecond // before the second try, longer before each other
	shelvesMax     = 1024                   // runs whose use of the store is cached
)

// Blobs implements mailbox.Blobs on an object store. Objects are named <run>/<hash>, in the
// form of the client library, so that its tools can read them. This package writes them
// itself: the library sends the name of an object without waiting for its chunks, and leaks a
// goroutine in some writes. The chunks of a run have subjects of their own, so that its blobs
// are found without scanning those of all other runs.
//
// Reads go to the leader: bus.OpenBuckets disables direct reads.
type Blobs struct {
	js     jetstream.JetStream
	store  jetstream.ObjectStore
	stream jetstream.Stream // behind the store
	names  names.Names
	chunk  int

	mu      sync.Mutex
	shelves map[string]*runBlobs
}

// runBlobs counts the blobs of one run that this process knows. A run that is active in several
// processes may exceed its limit by the blobs that each of them does not know of the others.
type runBlobs struct {
	mu      sync.Mutex
	counted bool
	used    int64
	putting map[string]chan struct{} // by reference; closed when that Put has ended
}

var _ mailbox.Blobs = (*Blobs)(nil)

// OpenBlobs makes a mailbox.Blobs of the object store that bus.OpenBuckets made.
func OpenBlobs(ctx context.Context, nc *nats.Conn, store jetstream.ObjectStore, names names.Names) (*Blobs, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: blobs: %w", err)
	}
	stream, err := js.Stream(ctx, names.BlobStream())
	if err != nil {
		return nil, fmt.Errorf("jetstream: blobs: %w", err)
	}
	chunk := int(min(blobChunkBytes, nc.MaxPayload()/2))
	return &Blobs{js: js, store: store, stream: stream, names: names, chunk: chunk, shelves: map[string]*runBlobs{}}, nil
}

// Put implements mailbox.Blobs.
func (b *Blobs) Put(ctx context.Context, run string, data []byte) (string, error) {
	if len(data) > mailbox.BlobBytesMax {
		return "", fmt.Errorf("jetstream: blob of %d bytes: %w", len(data), mailbox.ErrTooLarge)
	}
	if err := names.CheckToken(run); err != nil {
		return "", fmt.Errorf("jetstream: blob of run %q: %w", run, err)
	}
	ref := mailbox.BlobRef(data)
	s := b.runBlobsOf(run)
	done, err := s.beginPut(ctx, ref)
	if err == nil {
		defer done()
		err = b.putBlob(ctx, s, run, ref, data)
	}
	if err != nil {
		return "", fmt.Errorf("jetstream: blob of %s: %w", run, blobError(err))
	}
	return ref, nil
}

func (b *Blobs) putBlob(ctx context.Context, s *runBlobs, run, ref string, data []byte) error {
	there, err := b.hasBlob(ctx, run, ref, len(data))
	if err != nil || there {
		return err
	}
	if err := b.reserveRoom(ctx, s, run, int64(len(data))); err != nil {
		return err
	}
	id := run + "." + ref + "." + nuid.Next()
	named, err := b.writeChunks(ctx, id, blobName(run, ref), data)
	if err == nil || named {
		return err
	}
	s.releaseRoom(int64(len(data)))
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiTimeout)
	defer cancel()
	return errors.Join(err, b.purgeSubject(within, b.names.BlobChunks(id)))
}

// beginPut waits for a Put of the same blob to end, so that a second Put finds the blob of the
// first.
func (s *runBlobs) beginPut(ctx context.Context, ref string) (done func(), err error) {
	for {
		s.mu.Lock()
		other := s.putting[ref]
		if other == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer s.mu.Unlock()
	over := make(chan struct{})
	s.putting[ref] = over
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.putting, ref)
		close(over)
	}, nil
}

// hasBlob reports whether a run has a blob.
func (b *Blobs) hasBlob(ctx context.Context, run, ref string, size int) (bool, error) {
	info, err := b.store.GetInfo(ctx, blobName(run, ref))
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil && info.Size == uint64(size), err
}

// reserveRoom reserves room for a blob of a run. The first call for a run also counts the blobs that
// are stored already.
func (b *Blobs) reserveRoom(ctx context.Context, s *runBlobs, run string, size int64) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.counted {
		if s.used, err = b.usedBytes(ctx, run); err != nil {
			return err
		}
		s.counted = true
	}
	if s.used+size > mailbox.RunBlobBytesMax {
		return mailbox.ErrBlobRoom
	}
	s.used += size
	return nil
}

func (s *runBlobs) releaseRoom(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= size
}

// writeChunks stores the chunks one after the other, and the name once all chunks are stored. An
// empty blob has an empty chunk, because blobs are found by their chunks. named says that an
// error is not a refusal: the name may be stored.
func (b *Blobs) writeChunks(ctx context.Context, id, name string, data []byte) (named bool, err error) {
	info := jetstream.ObjectInfo{Bucket: b.names.BlobStore(), NUID: id, Size: uint64(len(data))}
	info.ObjectMeta = jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: uint32(b.chunk)}}
	for rest := data; len(rest) > 0 || info.Chunks == 0; info.Chunks++ {
		n := min(len(rest), b.chunk)
		ack, err := b.js.Publish(ctx, b.names.BlobChunks(id), rest[:n])
		if err == nil {
			err = bus.CheckAck(ack, b.names.BlobStream(), 0)
		}
		if err != nil {
			return false, err
		}
		rest = rest[n:]
	}
	digest := sha256.New()
	_, _ = digest.Write(data) // never fails
	info.Digest = jetstream.GetObjectDigestValue(digest)
	meta, err := json.Marshal(info)
	if err != nil {
		return false, err
	}
	ack, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: b.names.BlobMeta(name), Data: meta,
		Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}})
	if err == nil {
		err = bus.CheckAck(ack, b.names.BlobStream(), 0)
	}
	var refused *jetstream.APIError
	return !errors.As(err, &refused), err
}

func (b *Blobs) purgeSubject(ctx context.Context, subject string) error {
	return b.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
}

func blobName(run, ref string) string { return run + "/" + ref }

// blobError adds the remedy to the one store error that has one.
func blobError(err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode {
	case codeNoAccount, codeNoResources, codeNoMemory, codeNoStorage, codeStoreFailed:
		return fmt.Errorf("%w: %w", mailbox.ErrFull, err)
	}
	return err
}

func (b *Blobs) runBlobsOf(run string) *runBlobs {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.shelves[run]
	if s == nil {
		if len(b.shelves) >= shelvesMax {
			clear(b.shelves) // their use is counted again
		}
		s = &runBlobs{putting: map[string]chan struct{}{}}
		b.shelves[run] = s
	}
	return s
}

// Room returns how many bytes the blobs of a run take, or with run "" those of all runs, and
// how many they may take; most
// 0 means no limit.
func (b *Blobs) Room(ctx context.Context, run string) (used, most uint64, err error) {
	if run != "" {
		n, err := b.usedBytes(ctx, run)
		if err != nil {
			return 0, 0, fmt.Errorf("jetstream: room of the blobs of %s: %w", run, err)
		}
		return uint64(n), mailbox.RunBlobBytesMax, nil
	}
	info, err := b.stream.Info(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("jetstream: room of the blobs: %w", err)
	}
	return info.State.Bytes, uint64(max(info.Config.MaxBytes, 0)), nil
}

// usedBytes sums the sizes of a run's blobs in the store.
func (b *Blobs) usedBytes(ctx context.Context, run string) (sum int64, err error) {
	sum, _, err = b.measureRun(ctx, run)
	return sum, err
}

// measureRun sums the sizes of a run's blobs in the store, and finds when the newest was stored.
func (b *Blobs) measureRun(ctx context.Context, run string) (sum int64, newest time.Time, err error) {
	refs, err := b.listBlobs(ctx, run)
	if err != nil {
		return 0, newest, err
	}
	for _, ref := range refs {
		info, err := b.store.GetInfo(ctx, blobName(run, ref))
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			continue // chunks of a Put that did not finish
		}
		if err != nil {
			return 0, newest, err
		}
		sum += int64(info.Size)
		if info.ModTime.After(newest) {
			newest = info.ModTime
		}
	}
	return sum, newest, nil
}

// Strays calls each for every run that has blobs and that known does not know: with the bytes of its blobs, and when
// the newest was stored. It reads all names of the store.
func (b *Blobs) Strays(ctx context.Context, known func(run string) bool, each func(run string, bytes uint64, newest time.Time)) error {
	within, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	info, err := b.stream.Info(within, jetstream.WithSubjectFilter(b.names.BlobChunks(">")))
	if err != nil {
		return fmt.Errorf("jetstream: list blobs: %w", err)
	}
	runs := map[string]bool{}
	for subject := range info.State.Subjects {
		run, _, _ := strings.Cut(strings.TrimPrefix(subject, b.names.BlobChunks("")), ".")
		runs[run] = true
	}
	for run := range runs {
		if known(run) {
			continue
		}
		used, newest, err := b.measureRun(ctx, run)
		if err != nil {
			return fmt.Errorf("jetstream: room of the blobs of %s: %w", run, err)
		}
		each(run, uint64(used), newest)
	}
	return nil
}

// listBlobs names the blobs of a run that have chunks.
func (b *Blobs) listBlobs(ctx context.Context, run string) ([]string, error) {
	within, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	info, err := b.stream.Info(within, jetstream.WithSubjectFilter(b.names.BlobChunks(run+".>")))
	if err != nil {
		return nil, err
	}
	refs := map[string]struct{}{}
	for subject := range info.State.Subjects {
		ref, _, _ := strings.Cut(strings.TrimPrefix(subject, b.names.BlobChunks(run+".")), ".")
		refs[ref] = struct{}{}
	}
	return slices.Sorted(maps.Keys(refs)), nil
}

// Get implements mailbox.Blobs.
func (b *Blobs) Get(ctx context.Context, run, ref string, offset, n int64) (part []byte, size int64, err error) {
	if err := mailbox.CheckBlobRef(ref); err != nil {
		return nil, 0, fmt.Errorf("jetstream: blob: %w", err)
	}
	if err := names.CheckToken(run); err != nil {
		return nil, 0, fmt.Errorf("jetstream: blob of run %q: %w", run, err)
	}
	for try := 1; ; try++ {
		whole, err := b.getBlob(ctx, blobName(run, ref))
		if err == nil && mailbox.BlobRef(whole) == ref {
			return mailbox.BlobPart(whole, offset, n), int64(len(whole)), nil
		}
		if err == nil {
			err = jetstream.ErrDigestMismatch
		}
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			err = mailbox.ErrNoBlob
		}
		if try == blobTries || !pauseFor(ctx, time.Duration(try)*blobPause) {
			return nil, 0, fmt.Errorf("jetstream: blob %s of %s: %w", ref, run, err)
		}
	}
}

// getBlob reads a whole blob: blobs are small, and only a whole blob can be verified.
func (b *Blobs) getBlob(ctx context.Context, name string) (whole []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	object, err := b.store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	return io.ReadAll(io.LimitReader(object, mailbox.BlobBytesMax+1))
}

// pauseFor waits, and reports whether ctx is still valid afterwards.
func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Drop implements mailbox.Blobs.
func (b *Blobs) Drop(ctx context.Context, run string) error {
	if err := names.CheckToken(run); err != nil {
		return fmt.Errorf("jetstream: blobs of run %q: %w", run, err)
	}
	refs, err := b.listBlobs(ctx, run)
	for _, ref := range refs {
		err = errors.Join(err, b.purgeSubject(ctx, b.names.BlobMeta(blobName(run, ref))))
	}
	if err == nil { // the chunks last: blobs are found by their chunks
		err = b.purgeSubject(ctx, b.names.BlobChunks(run+".>"))
	}
	if err != nil {
		return fmt.Errorf("jetstream: blobs of %s: %w", run, err)
	}
	b.mu.Lock()
	delete(b.shelves, run)
	b.mu.Unlock()
	return nil
}
