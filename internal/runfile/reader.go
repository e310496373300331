package runfile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/troupe-run/troupe/internal/bus/names"
	"github.com/troupe-run/troupe/mailbox"
)

// Read reads a whole file. Every error is ErrFile or ErrNewer, or comes from the reader, and names the line.
func Read(from io.Reader) (File, error) {
	r := &reader{scan: bufio.NewScanner(io.LimitReader(from, FileBytesMax+1)), sum: sha256.New(), blobs: map[string]*bytes.Buffer{}, logs: map[mailbox.Address]uint64{}}
	r.scan.Buffer(nil, LineBytesMax)
	err := r.readAll()
	if err != nil {
		return File{}, fmt.Errorf("runfile: line %d: %w", r.line, err)
	}
	return r.file, nil
}

// reader is a file that is being read.
type reader struct {
	scan  *bufio.Scanner
	sum   hash.Hash
	line  int
	bytes int64
	file  File
	blobs map[string]*bytes.Buffer
	logs  map[mailbox.Address]uint64 // last place of each log
	last  string                     // reference of the blob of the line before
	size  int64                      // of that blob
	ended bool
	lines readLines
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFile, fmt.Sprintf(format, args...))
}

func (r *reader) readAll() error {
	for r.scan.Scan() {
		r.line++
		data := r.scan.Bytes()
		if r.bytes += int64(len(data)) + 1; r.bytes > FileBytesMax {
			return wrong("the file has more than %d bytes", FileBytesMax)
		}
		if r.ended {
			return wrong("there is a line after the end")
		}
		if err := r.readLine(data); err != nil {
			return err
		}
		r.sum.Write(data)
		r.sum.Write([]byte{'\n'})
	}
	switch err := r.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		r.line++
		return wrong("the line has more than %d bytes", LineBytesMax)
	case err != nil:
		return err
	case r.line == 0:
		return wrong("the file is empty")
	case !r.ended:
		return wrong("the last line is not the end: the file was cut")
	}
	return nil
}

// readLine reads one line, whose sort shows in its first key.
func (r *reader) readLine(data []byte) error {
	switch {
	case r.line == 1:
		return r.readHeader(data)
	case bytes.HasPrefix(data, []byte(`{"log":`)):
		return r.readEntry(data)
	case bytes.HasPrefix(data, []byte(`{"blob":`)):
		return r.readBlob(data)
	case bytes.HasPrefix(data, []byte(`{"end":`)):
		return r.readEnd(data)
	}
	return wrong("it is neither an entry nor a blob nor the end")
}

func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return wrong("%v", err)
	}
	if d.More() {
		return wrong("something follows the object")
	}
	return nil
}

func (r *reader) readHeader(data []byte) error {
	var mark struct {
		Troupe  string `json:"troupe"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(data, &mark); err != nil || mark.Troupe != Kind {
		return wrong(`the file does not begin with {"troupe":%q,"version":…}`, Kind)
	}
	if mark.Version > Version {
		return fmt.Errorf("%w: version %d, this troupe reads up to %d", ErrNewer, mark.Version, Version)
	}
	h := &r.file.Header
	if err := decode(data, h); err != nil {
		return err
	}
	switch {
	case h.Version < 1:
		return wrong("version is %d", h.Version)
	case names.CheckToken(h.Run) != nil:
		return wrong("run is %.100q", h.Run)
	case h.Logs < 0 || h.Logs > LogsMax:
		return wrong("%d logs, at most %d", h.Logs, LogsMax)
	case h.Entries < 0 || h.Entries > EntriesMax:
		return wrong("%d entries, at most %d", h.Entries, EntriesMax)
	}
	return nil
}

func (r *reader) readEntry(data []byte) error {
	var l entryLine
	if err := decode(data, &l); err != nil {
		return err
	}
	r.lines.note(r.line, data, l)
	pool := l.Log.Pool()
	last, known := r.logs[l.Log]
	switch {
	case l.Log.Run() != r.file.Header.Run:
		return wrong("log %.100q is not one of run %s", l.Log, r.file.Header.Run)
	case names.CheckToken(l.Log.Agent()) != nil || pool != "" && names.CheckToken(pool) != nil || l.Log != mailbox.At(l.Log.Run(), l.Log.Agent()).In(pool):
		return wrong("log is %.100q", l.Log)
	case known && l.Place <= last:
		return wrong("place %d of %s follows place %d", l.Place, l.Log, last)
	case len(l.Data) == 0 || len(l.Data) > mailbox.EntryBytesMax:
		return wrong("an entry of %d bytes, 1 to %d", len(l.Data), mailbox.EntryBytesMax)
	case l.At < 0 || l.Nanos < 0:
		return wrong("the stamp is negative")
	case len(r.file.Entries) >= r.file.Header.Entries:
		return wrong("more entries than the header says: %d", r.file.Header.Entries)
	case !known && len(r.logs) >= r.file.Header.Logs:
		return wrong("more logs than the header says: %d", r.file.Header.Logs)
	case len(r.blobs) > 0:
		return wrong("an entry follows the blobs")
	}
	r.logs[l.Log], r.lines.entries = l.Place, append(r.lines.entries, r.line)
	r.file.Entries = append(r.file.Entries, mailbox.Message{To: l.Log, Place: l.Place, At: l.At, Nanos: l.Nanos, Data: l.Data})
	return nil
}

func (r *reader) readBlob(data []byte) error {
	var l blobLine
	if err := decode(data, &l); err != nil {
		return err
	}
	whole, known := r.blobs[l.Blob]
	switch {
	case mailbox.CheckBlobRef(l.Blob) != nil:
		return wrong("blob is %.80q", l.Blob)
	case l.Size < 0 || l.Size > mailbox.BlobBytesMax:
		return wrong("a blob of %d bytes, at most %d", l.Size, mailbox.BlobBytesMax)
	case known && (l.Blob != r.last || l.Size != r.size || l.Offset != int64(whole.Len()) || len(l.Data) == 0):
		return wrong("the part of a blob at %d does not follow the one before", l.Offset)
	case !known && (l.Offset != 0 || len(r.blobs) >= BlobsMax):
		return wrong("the blob begins at %d, or there are more than %d blobs", l.Offset, BlobsMax)
	}
	if !known {
		if err := r.finishBlob(); err != nil {
			return err
		}
		whole = &bytes.Buffer{}
		r.blobs[l.Blob], r.last, r.size = whole, l.Blob, l.Size
	}
	if int64(whole.Len()+len(l.Data)) > l.Size {
		return wrong("the blob is longer than its size of %d bytes", l.Size)
	}
	whole.Write(l.Data)
	return nil
}

// finishBlob checks the last blob against its reference, which is the hash of its content.
func (r *reader) finishBlob() error {
	if r.last == "" {
		return nil
	}
	whole := r.blobs[r.last].Bytes()
	if int64(len(whole)) != r.size || mailbox.BlobRef(whole) != r.last {
		return wrong("blob %s is not what its name says", r.last)
	}
	if r.file.Blobs == nil {
		r.file.Blobs = map[string][]byte{}
	}
	r.file.Blobs[r.last] = whole
	return nil
}

func (r *reader) readEnd(data []byte) error {
	var t trailer
	if err := decode(data, &t); err != nil {
		return err
	}
	if err := r.finishBlob(); err != nil {
		return err
	}
	h := r.file.Header
	switch {
	case !t.End || t.Lines != r.line-1:
		return wrong("the end says %d lines before it", t.Lines)
	case t.SHA256 != hex.EncodeToString(r.sum.Sum(nil)):
		line, text := r.locate()
		r.line = line
		return wrong("%s", text)
	case len(r.file.Entries) != h.Entries || len(r.logs) != h.Logs:
		return wrong("%d entries of %d logs, the header says %d of %d", len(r.file.Entries), len(r.logs), h.Entries, h.Logs)
	}
	if written, err := json.Marshal(t); err != nil || !bytes.Equal(data, written) { // "SHA256" would decode, too
		return wrong("the last line was changed")
	}
	r.ended = true
	return nil
}
