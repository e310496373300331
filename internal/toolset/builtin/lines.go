package builtin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// lineReader reads the lines of one file after the other.
type lineReader struct {
	file *bufio.Reader
	from *bufio.Reader // the file, or its text as UTF-8
	long []byte        // of a line longer than the buffer
}

// lineBuffer is the size of a file that is searched for words as a whole: nearly all that people have written.
const lineBuffer = 256 << 10

// lineReaders are those of finished searches, for their buffers.
var lineReaders = sync.Pool{New: func() any { return &lineReader{file: bufio.NewReaderSize(nil, lineBuffer)} }}

func newLineReader() *lineReader { return lineReaders.Get().(*lineReader) }

// release gives the reader to later searches.
func (r *lineReader) release() {
	r.file.Reset(nil)
	r.from = nil
	lineReaders.Put(r)
}

func (r *lineReader) reset(f io.Reader) {
	r.file.Reset(f)
	r.from = r.file
	head, _ := r.file.Peek(markUTF16) // next returns the error
	if text := asUTF8(head, r.file); text != io.Reader(r.file) {
		r.from = bufio.NewReaderSize(text, lineBuffer)
	}
}

// isBinary reports whether the file does not begin as text.
func (r *lineReader) isBinary() bool {
	head, _ := r.from.Peek(sniffBytes) // next returns the error
	return isBinary(head)
}

// wholeFile returns the text of a file that fits the buffer, without reading past it; ok is false for a longer one, and
// for one that cannot be read.
func (r *lineReader) wholeFile() (text []byte, ok bool) {
	text, err := r.from.Peek(lineBuffer)
	return text, errors.Is(err, io.EOF)
}

// next returns the next line without its end, valid until the next call. Of a line longer than
// grepLineMax it returns the beginning. At the end of the file the error is io.EOF.
func (r *lineReader) next() ([]byte, error) {
	line, err := r.from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = append(r.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = r.from.ReadSlice('\n')
			r.long = append(r.long, line[:min(len(line), grepLineMax-len(r.long))]...)
		}
		line = r.long
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
}
