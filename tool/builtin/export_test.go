package builtin

import (
	"context"
	"regexp"
	"strings"

	"github.com/troupe-run/troupe/tool/mask"
)

// GrepText searches one text as grep searches the file "a".
func GrepText(pattern, text string) []string {
	s := &search{p: &place{cfg: Config{Mask: mask.New(mask.Config{})}}, re: regexp.MustCompile(pattern), words: prefilter(pattern)}
	var lines []string
	for _, line := range s.lines(context.Background(), "a", []byte(text)).lines {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// WithoutSandbox starts git without the sandbox until the result is called.
func WithoutSandbox() func() {
	unconfined.Store(true)
	return func() { unconfined.Store(false) }
}
