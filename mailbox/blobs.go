package mailbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Limits of blobs.
const (
	// BlobBytesMax is the most bytes of one blob.
	BlobBytesMax = 8 << 20
	// RunBlobBytesMax is the most bytes of all blobs of one run.
	RunBlobBytesMax = 256 << 20
)

var (
	// ErrBlobRef says that a string is not the reference of a blob.
	ErrBlobRef = errors.New("mailbox: not the reference of a blob")
	// ErrNoBlob says that the run has no such blob.
	ErrNoBlob = errors.New("mailbox: no such blob in this run")
	// ErrBlobRoom says that the blobs of the run have reached RunBlobBytesMax. The blob was
	// not stored.
	ErrBlobRoom = errors.New("mailbox: the blobs of the run are at their limit")
)

// Blobs stores payloads that are too large for an entry. A blob belongs to a run and is named
// by its content, so that it never changes; it is deleted only with its run (PROTOCOL P15).
type Blobs interface {
	// Put stores data, unless the run has it already, and returns its reference
	// once the store has acknowledged it. More than BlobBytesMax is ErrTooLarge.
	Put(ctx context.Context, run string, data []byte) (ref string, err error)

	// Get reads at most n bytes from offset, and returns the size of the blob. If the blob is
	// not found, Get retries for a moment: a reference is written only after its blob was
	// acknowledged, so the blob should exist.
	Get(ctx context.Context, run, ref string, offset, n int64) (part []byte, size int64, err error)

	// Drop deletes all blobs of a run. Dropping again does nothing.
	Drop(ctx context.Context, run string) error
}

// BlobRef is the reference of a blob: the hash of its content.
func BlobRef(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// CheckBlobRef rejects a reference that BlobRef could not have made.
func CheckBlobRef(ref string) error {
	raw, err := hex.DecodeString(ref)
	if err != nil || len(raw) != sha256.Size || ref != hex.EncodeToString(raw) {
		return fmt.Errorf("%w: %.80q", ErrBlobRef, ref)
	}
	return nil
}

// BlobPart is the part of a whole blob that Get returns.
func BlobPart(whole []byte, offset, n int64) []byte {
	size := int64(len(whole))
	from := min(max(offset, 0), size)
	return whole[from : from+min(max(n, 0), size-from)]
}
