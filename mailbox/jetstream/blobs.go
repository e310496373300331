package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/mailbox"
)

const (
	blobChunkBytes = 512 << 10              // of a blob in one message
	blobTries      = 4                      // to read a blob that is not found
	blobPause      = 100 * time.Millisecond // before the second try, longer before each other
	shelvesMax     = 1024                   // runs whose use of the store is remembered
)

// Blobs implements mailbox.Blobs on an object store. Objects are named
// <run>/<hash>. Reads go to the leader: bus.OpenBuckets turns direct reads off.
type Blobs struct {
	store  jetstream.ObjectStore
	stream jetstream.Stream // behind the store
	names  bus.Names
	chunk  uint32

	mu      sync.Mutex
	shelves map[string]*shelf
}

// shelf is what is known of one run. Its lock is held over a Put: a second one
// of the same blob must find the first. A run that is active in several
// processes may go over its limit by what each of them does not know of.
type shelf struct {
	mu      sync.Mutex
	counted bool
	used    int64
}

var _ mailbox.Blobs = (*Blobs)(nil)

// OpenBlobs makes a mailbox.Blobs of the object store that bus.OpenBuckets made.
func OpenBlobs(ctx context.Context, nc *nats.Conn, store jetstream.ObjectStore, names bus.Names) (*Blobs, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("jetstream: blobs: %w", err)
	}
	stream, err := js.Stream(ctx, names.BlobStream())
	if err != nil {
		return nil, fmt.Errorf("jetstream: blobs: %w", err)
	}
	chunk := min(blobChunkBytes, nc.MaxPayload()/2)
	return &Blobs{store: store, stream: stream, names: names, chunk: uint32(chunk), shelves: map[string]*shelf{}}, nil
}

// Put implements mailbox.Blobs.
func (b *Blobs) Put(ctx context.Context, run string, data []byte) (string, error) {
	if len(data) > mailbox.BlobBytesMax {
		return "", fmt.Errorf("jetstream: blob of %d bytes: %w", len(data), mailbox.ErrTooLarge)
	}
	if err := bus.Token(run); err != nil {
		return "", fmt.Errorf("jetstream: blob of run %q: %w", run, err)
	}
	ref := mailbox.BlobRef(data)
	s := b.shelf(run)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := b.put(ctx, s, run, ref, data); err != nil {
		return "", fmt.Errorf("jetstream: blob of %s: %w", run, blobError(err))
	}
	return ref, nil
}

func (b *Blobs) put(ctx context.Context, s *shelf, run, ref string, data []byte) error {
	name := blobName(run, ref)
	info, err := b.store.GetInfo(ctx, name)
	switch {
	case err == nil && info.Size == uint64(len(data)):
		return nil
	case err != nil && !errors.Is(err, jetstream.ErrObjectNotFound):
		return err
	}
	if !s.counted {
		if s.used, err = b.used(ctx, run); err != nil {
			return err
		}
		s.counted = true
	}
	if s.used+int64(len(data)) > mailbox.RunBlobBytesMax {
		return mailbox.ErrBlobRoom
	}
	meta := jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: b.chunk}}
	if _, err := b.store.Put(ctx, meta, bytes.NewReader(data)); err != nil {
		// The library sends the name behind the chunks without waiting for them: a
		// full store may have the name of what it could not take.
		return errors.Join(err, b.remove(context.WithoutCancel(ctx), name))
	}
	s.used += int64(len(data))
	return nil
}

func blobName(run, ref string) string { return run + "/" + ref }

// blobError names the one fault of a store that has a remedy.
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

func (b *Blobs) shelf(run string) *shelf {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.shelves[run]
	if s == nil {
		if len(b.shelves) >= shelvesMax {
			clear(b.shelves) // they are counted anew
		}
		s = &shelf{}
		b.shelves[run] = s
	}
	return s
}

// used sums what a run has in the store.
func (b *Blobs) used(ctx context.Context, run string) (sum int64, err error) {
	list, err := b.list(ctx, run)
	for _, info := range list {
		sum += int64(info.Size)
	}
	return sum, err
}

func (b *Blobs) list(ctx context.Context, run string) ([]*jetstream.ObjectInfo, error) {
	all, err := b.store.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil
	}
	var own []*jetstream.ObjectInfo
	for _, info := range all {
		if strings.HasPrefix(info.Name, run+"/") {
			own = append(own, info)
		}
	}
	return own, err
}

// Get implements mailbox.Blobs.
func (b *Blobs) Get(ctx context.Context, run, ref string, offset, n int64) (part []byte, size int64, err error) {
	if err := mailbox.CheckBlobRef(ref); err != nil {
		return nil, 0, fmt.Errorf("jetstream: blob: %w", err)
	}
	if err := bus.Token(run); err != nil {
		return nil, 0, fmt.Errorf("jetstream: blob of run %q: %w", run, err)
	}
	for try := 1; ; try++ {
		whole, err := b.get(ctx, blobName(run, ref))
		if err == nil && mailbox.BlobRef(whole) == ref {
			return mailbox.BlobPart(whole, offset, n), int64(len(whole)), nil
		}
		if err == nil {
			err = jetstream.ErrDigestMismatch
		}
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			err = mailbox.ErrNoBlob
		}
		if try == blobTries || !pause(ctx, time.Duration(try)*blobPause) {
			return nil, 0, fmt.Errorf("jetstream: blob %s of %s: %w", ref, run, err)
		}
	}
}

// get reads a whole blob: they are small, and only the whole can be checked.
func (b *Blobs) get(ctx context.Context, name string) (whole []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	object, err := b.store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	return io.ReadAll(io.LimitReader(object, mailbox.BlobBytesMax+1))
}

// pause reports whether ctx still goes on after it.
func pause(ctx context.Context, d time.Duration) bool {
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
	if err := bus.Token(run); err != nil {
		return fmt.Errorf("jetstream: blobs of run %q: %w", run, err)
	}
	list, err := b.list(ctx, run)
	for _, info := range list {
		err = errors.Join(err, b.remove(ctx, info.Name))
	}
	if err != nil {
		return fmt.Errorf("jetstream: blobs of %s: %w", run, err)
	}
	b.mu.Lock()
	delete(b.shelves, run)
	b.mu.Unlock()
	return nil
}

// remove deletes an object, and then the mark that the library leaves of it.
func (b *Blobs) remove(ctx context.Context, name string) error {
	err := b.store.Delete(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.names.BlobMeta(name)))
}
