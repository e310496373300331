package builtin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader reads the lines of one file after the other.
type lineReader struct {
	from *bufio.Reader
	long []byte // of a line longer than the buffer
}

const lineBuffer = 64 << 10

func newLineReader() *lineReader {
	return &lineReader{from: bufio.NewReaderSize(nil, lineBuffer)}
}

func (r *lineReader) reset(f io.Reader) {
	r.from.Reset(f)
	head, _ := r.from.Peek(markUTF16) // next returns the error
	if text := asUTF8(head, r.from); text != io.Reader(r.from) {
		r.from = bufio.NewReaderSize(text, lineBuffer)
	}
}

// isBinary reports whether the file does not begin as text.
func (r *lineReader) isBinary() bool {
	head, _ := r.from.Peek(sniffBytes) // next returns the error
	return isBinary(head)
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
