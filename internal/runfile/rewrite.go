package runfile

import (
	"bytes"
	"crypto/sha256"

	"github.com/troupe-run/troupe/mailbox"
)

// Logs that are copied with changes have other hashes, and entries with other bodies.

// HashChain is the chain of hashes over a log (PROTOCOL P12).
type HashChain struct {
	// Hashes are those of the first 1, 2, … entries, as entries carry them.
	Hashes [][]byte
	sum    [sha256.Size]byte
}

// Add adds the next entry.
func (c *HashChain) Add(data []byte) {
	c.sum = sha256.Sum256(append(c.sum[:], data...))
	c.Hashes = append(c.Hashes, bytes.Clone(c.sum[:16]))
}

// ChangeBody decodes the body of an item, changes it and encodes it again.
func ChangeBody[T any](body []byte, change func(*T)) ([]byte, error) {
	var v T
	if err := mailbox.Unmarshal(body, &v); err != nil {
		return nil, err
	}
	change(&v)
	return mailbox.Marshal(v)
}
