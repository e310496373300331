// Package runfile reads and writes the run file: all logs of one run in one file, with the blobs that
// they name (docs/replay.md). "troupe export --logs" and "troupe dump" write it; replay, verify, fixture,
// diff and undo read it.
//
// The file is lines of JSON. The first is the Header, the last the trailer with the hash of all lines
// before it; between them is one line for each entry, in the order of each log, and one for each part
// of a blob. A reader trusts nothing in it: every line, count and size has a limit, and an error names
// the line.
package runfile

import (
	"encoding/json"
	"errors"

	"github.com/troupe-run/troupe/mailbox"
)

// Version is the newest version of the file that this code reads and writes.
const Version = 1

// Kind is the value of the first key of a run file.
const Kind = "run"

// Limits of a file.
const (
	LineBytesMax = 1 << 20 // an entry as base64, a part of a blob, or the header
	FileBytesMax = 512 << 20
	EntriesMax   = 1_000_000
	LogsMax      = 20_000
	BlobsMax     = 10_000
	// ResultBytesMax is the largest result that a header holds; a larger one is left out.
	ResultBytesMax = LineBytesMax / 2
	// blobPartBytes is how much of a blob a line holds.
	blobPartBytes = 256 << 10
)

// ErrFile says that a file is not a whole run file.
var ErrFile = errors.New("not a run file")

// ErrNewer says that a newer troupe wrote the file.
var ErrNewer = errors.New("a run file of a newer version")

// Header is the first line.
type Header struct {
	Troupe    string `json:"troupe"` // Kind
	Version   int    `json:"version"`
	Run       string `json:"run"`
	WrittenBy string `json:"written_by"`         // version of troupe
	State     string `json:"state,omitempty"`    // live, queued, parked, finished
	Redacted  bool   `json:"redacted,omitempty"` // texts were replaced: the hashes in the logs no longer hold
	Dump      bool   `json:"dump,omitempty"`     // the logs are a consistent cut, and the blobs that they name are here
	Logs      int    `json:"logs"`
	Entries   int    `json:"entries"`
	// Result is the end of the run as the writer saw it.
	Result json.RawMessage `json:"result,omitempty"`
}

// File is a run file in memory.
type File struct {
	Header  Header
	Entries []mailbox.Message
	Blobs   map[string][]byte // by reference
}

// entryLine is an entry.
type entryLine struct {
	Log   mailbox.Address `json:"log"`
	Place uint64          `json:"place"`
	At    int64           `json:"at"` // stamp, Unix milliseconds
	Nanos int64           `json:"nanos,omitempty"`
	Data  []byte          `json:"data"` // the bytes of the entry, base64
}

// blobLine is a part of a blob. The parts of a blob follow each other.
type blobLine struct {
	Blob   string `json:"blob"` // its reference
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"` // of the whole blob
	Data   []byte `json:"data"`
}

// trailer is the last line.
type trailer struct {
	End    bool   `json:"end"`
	Lines  int    `json:"lines"`  // before this one
	SHA256 string `json:"sha256"` // of their bytes
}
