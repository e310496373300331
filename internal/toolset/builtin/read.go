package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/tool"
)

// Limits of read_file.
const (
	readLinesDefault = 200
	readLineBytes    = 400       // of a line are shown
	readBytesMax     = 56 << 10  // of one result: it stays below the limit of a result, which would cut its middle out
	readWholeMax     = 8 << 20   // larger files are read only as far as asked
	readFarMax       = 256 << 20 // of a file are read: sparse ones have no end
	lineBytesKept    = 16 << 10  // of a line are looked at for secrets before it is clipped
	readBuffer       = 256 << 10 // bytes
	ctxEvery         = 1024      // lines between two looks at the context
)

type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"lines, default 200"`
}

// readFile makes read_file:
//
//	<lineno><TAB><text>   each line, without its line end (LF or CRLF); clipped
//	                      at 400 bytes with the suffix " …[line clipped]"
//	[lines A-B of N]      the last line; [lines 0-0 of N] when there are none
//
// B may be less than asked for when the lines are long. N is "?" for a file of
// more than 8 MiB whose end was not reached; lines behind the first 256 MiB are
// not shown. A file with the byte-order mark of UTF-16 is shown as UTF-8. A binary file is an error result, "binary file: N bytes".
func (t *fileTools) readFile() (tool.Tool, error) {
	return newReadTool("read_file", "Read lines of a text file, as lineno<TAB>text.",
		func(ctx context.Context, in readArgs) (string, error) {
			name, err := t.ws.resolvePath("read_file", in.Path)
			if err != nil {
				return "", err
			}
			f, info, err := t.ws.openFile(name)
			if err != nil {
				return "", err
			}
			defer func() { _ = f.Close() }()
			return t.readWindow(ctx, f, info.Size(), name, in)
		})
}

// readWindow reads a file line by line and keeps the lines that were asked for.
func (t *fileTools) readWindow(ctx context.Context, f *os.File, size int64, name string, in readArgs) (string, error) {
	first := max(in.Offset, 1)
	limit := in.Limit
	if limit <= 0 {
		limit = readLinesDefault
	}
	near := &io.LimitedReader{R: f, N: readFarMax}
	r := bufio.NewReaderSize(untilDone{ctx, near}, readBuffer)
	mark, _ := r.Peek(markUTF16)
	if text := asUTF8(mark, r); text != io.Reader(r) {
		r = bufio.NewReaderSize(text, readBuffer)
	}
	if head, _ := r.Peek(sniffBytes); isBinary(head) {
		return "", fmt.Errorf("binary file: %d bytes", size)
	}
	lines := t.mask.NewLineMasker(name)
	var b strings.Builder
	n, shownFrom, shownTo, open := 0, 0, 0, true
	for {
		line, err := nextLine(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", pathError(name, err)
		}
		n++
		if n%ctxEvery == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		if !open {
			continue
		}
		masked := lines.MaskLine(line) // also before the first shown line: a key may begin there
		if n < first {
			continue
		}
		text := strconv.Itoa(n) + "\t" + clipLine(masked, readLineBytes) + "\n"
		if open = n-first < limit && b.Len()+len(text) <= readBytesMax; open {
			b.WriteString(text)
			shownTo = n
			if shownFrom == 0 {
				shownFrom = n
			}
		} else if size > readWholeMax {
			fmt.Fprintf(&b, "[lines %d-%d of ?]", shownFrom, shownTo)
			return b.String(), nil
		}
	}
	count := strconv.Itoa(n)
	if near.N <= 0 && size > readFarMax {
		count = "?"
	}
	fmt.Fprintf(&b, "[lines %d-%d of %s]", shownFrom, shownTo, count)
	return b.String(), nil
}

// untilDone reads until its context ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// nextLine reads a line without its end. It keeps only the beginning of a long line and
// discards the rest. The result is valid until the next call.
func nextLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		kept := bytes.Clone(line[:lineBytesKept])
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return kept, nil
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	return line[:min(len(line), lineBytesKept)], nil
}
