// Package blobs is a blob store in memory, for tests.
package blobs

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/troupe-run/troupe/mailbox"
)

// Store implements mailbox.Blobs.
type Store struct {
	mu   sync.Mutex
	runs map[string]map[string][]byte
	used map[string]int64
}

var _ mailbox.Blobs = (*Store)(nil)

// New makes an empty blob store.
func New() *Store {
	return &Store{runs: map[string]map[string][]byte{}, used: map[string]int64{}}
}

// Put implements mailbox.Blobs.
func (b *Store) Put(ctx context.Context, run string, data []byte) (string, error) {
	if len(data) > mailbox.BlobBytesMax {
		return "", fmt.Errorf("blobs: blob of %d bytes: %w", len(data), mailbox.ErrTooLarge)
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("blobs: blob: %w", context.Cause(ctx))
	}
	ref := mailbox.BlobRef(data)
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.runs[run][ref]; ok {
		return ref, nil
	}
	if b.used[run]+int64(len(data)) > mailbox.RunBlobBytesMax {
		return "", fmt.Errorf("blobs: blob of %s: %w", run, mailbox.ErrBlobRoom)
	}
	if b.runs[run] == nil {
		b.runs[run] = map[string][]byte{}
	}
	b.runs[run][ref] = bytes.Clone(data)
	b.used[run] += int64(len(data))
	return ref, nil
}

// Get implements mailbox.Blobs. It does not retry: a blob that is missing now will not appear
// later.
func (b *Store) Get(_ context.Context, run, ref string, offset, n int64) ([]byte, int64, error) {
	if err := mailbox.CheckBlobRef(ref); err != nil {
		return nil, 0, fmt.Errorf("blobs: blob: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	whole, ok := b.runs[run][ref]
	if !ok {
		return nil, 0, fmt.Errorf("blobs: blob %s: %w", ref, mailbox.ErrNoBlob)
	}
	return bytes.Clone(mailbox.BlobPart(whole, offset, n)), int64(len(whole)), nil
}

// Drop implements mailbox.Blobs.
func (b *Store) Drop(_ context.Context, run string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.runs, run)
	delete(b.used, run)
	return nil
}
