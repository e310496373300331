package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-run/troupe/model"
)

func TestAttachedFilesAreWhatTheirBytesSay(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, c := range map[string]struct{ text, mime string }{
		"a.jpg": {"\x89PNG\r\n\x1a\n....", model.PNG}, "b": {"%PDF-1.7", model.PDF}, "c.txt": {"hello", "text/plain"},
		"e.html": {"hello, world", "text/html"},
	} {
		got, err := attachments([]string{put(name, c.text)})
		if err != nil || len(got) != 1 || got[0].mime != c.mime || got[0].name != name || string(got[0].data) != c.text {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for says, files := range map[string][]string{
		"no such file": {filepath.Join(dir, "nothing")}, "it must have 1 to": {put("empty", "")}, "it is application/zip": {put("z", "PK\x03\x04....")},
		"9 files are attached": slices.Repeat([]string{put("x", "x")}, 9), "is a directory": {dir},
	} {
		if _, err := attachments(files); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
