package runfile

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/troupe-run/troupe/mailbox"
)

// Write writes a file. It sets the kind, the version and the counts of the header.
func Write(to io.Writer, f File) error {
	f.Header.Troupe, f.Header.Version = Kind, Version
	f.Header.Entries, f.Header.Logs = len(f.Entries), countLogs(f.Entries)
	if len(f.Header.Result) > ResultBytesMax {
		f.Header.Result = nil
	}
	w := &writer{to: bufio.NewWriter(to), sum: sha256.New()}
	err := w.write(f.Header)
	for _, m := range f.Entries {
		if err == nil {
			err = w.write(entryLine{m.To, m.Place, m.At, m.Nanos, m.Data})
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(f.Blobs)) {
		if err == nil {
			err = w.writeBlob(ref, f.Blobs[ref])
		}
	}
	if err == nil {
		err = w.write(trailer{true, w.lines, hex.EncodeToString(w.sum.Sum(nil))})
	}
	if err == nil {
		err = w.to.Flush()
	}
	if err != nil {
		return fmt.Errorf("runfile: write: %w", err)
	}
	return nil
}

func countLogs(entries []mailbox.Message) int {
	logs := map[mailbox.Address]bool{}
	for _, m := range entries {
		logs[m.To] = true
	}
	return len(logs)
}

// writer writes lines and hashes them.
type writer struct {
	to    *bufio.Writer
	sum   hash.Hash
	lines int
}

func (w *writer) write(line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if len(data) >= LineBytesMax {
		return fmt.Errorf("line %d has %d bytes, at most %d", w.lines+1, len(data), LineBytesMax)
	}
	data = append(data, '\n')
	w.lines++
	w.sum.Write(data)
	_, err = w.to.Write(data)
	return err
}

func (w *writer) writeBlob(ref string, data []byte) error {
	for at := 0; at == 0 || at < len(data); at += blobPartBytes {
		part := data[at:min(len(data), at+blobPartBytes)]
		if err := w.write(blobLine{ref, int64(at), int64(len(data)), part}); err != nil {
			return err
		}
	}
	return nil
}
