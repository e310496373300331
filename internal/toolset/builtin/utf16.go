package builtin

import (
	"bytes"
	"io"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// asUTF8 returns the text of a file that begins with the byte-order mark of UTF-16 as UTF-8, without the mark. Any other
// file it returns as it is.
func asUTF8(head []byte, file io.Reader) io.Reader {
	if !bytes.HasPrefix(head, []byte{0xff, 0xfe}) && !bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return file
	}
	return transform.NewReader(file, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder())
}

const markUTF16 = 2 // bytes
