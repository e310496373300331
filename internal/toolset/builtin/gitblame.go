package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-run/troupe/tool"
)

// Limits of git_blame.
const (
	blameLinesDefault = 200
	blameLinesMax     = 400
	blameLineBytes    = 300
	blameFileMax      = 8 << 20
)

type blameArgs struct {
	Path string `json:"path"`
	From int    `json:"from,omitempty" jsonschema:"first line, from 1"`
	To   int    `json:"to,omitempty" jsonschema:"last line"`
}

// gitBlame makes git_blame: who last changed each line of a file as it is in HEAD.
//
//	hash<TAB>author<TAB>date<TAB>lineno<TAB>text   clipped at 300 bytes
//	[lines A-B of N]
//
// 200 lines by default, 400 at most. Changes that are not committed are not seen.
func (t *gitTools) gitBlame() (tool.Tool, error) {
	return newReadTool("git_blame", "Who last changed each line of a file, as committed.",
		func(ctx context.Context, in blameArgs) (string, error) {
			return t.readHistory(ctx, "git_blame", in.Path, func(v *gitView, path string) (string, error) { return t.blameText(ctx, v, path, in) })
		})
}

func (t *gitTools) blameText(ctx context.Context, v *gitView, path string, in blameArgs) (string, error) {
	text, err := t.committedLines(ctx, v, path)
	if err != nil {
		return "", err
	}
	from := max(in.From, 1)
	to := in.To
	if to < from {
		to = from + blameLinesDefault - 1
	}
	to = min(to, from+blameLinesMax-1, len(text))
	if from > to {
		return fmt.Sprintf("[lines 0-0 of %d]", len(text)), nil
	}
	out, err := v.runLog(ctx, gitBytesMax, "blame", "--line-porcelain", "--no-textconv", "-L", fmt.Sprintf("%d,%d", from, to), "HEAD", "--", v.repoPath(path))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	last := writeBlame(&b, out.text, text)
	fmt.Fprintf(&b, "[lines %d-%d of %d]", from, last, len(text))
	return b.String(), nil
}

// committedLines returns the lines of a file as it is in HEAD, masked.
func (t *gitTools) committedLines(ctx context.Context, v *gitView, path string) ([]string, error) {
	out, err := v.runLog(ctx, blameFileMax, "cat-file", "blob", "HEAD:"+v.repoPath(path))
	if errors.Is(err, errGit) {
		return nil, fmt.Errorf("%s is not a file of the last commit", printableName(path))
	}
	if err != nil {
		return nil, err
	}
	if isBinary(out.text) {
		return nil, fmt.Errorf("binary file: %d bytes", len(out.text))
	}
	masked := t.mask.NewLineMasker(path)
	var text []string
	for line := range bytes.Lines(out.text) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		text = append(text, clipLine(masked.MaskLine(line), blameLineBytes))
	}
	return text, nil
}

// writeBlame writes the output of `git blame --line-porcelain`, which has for each line a
// header "hash old new", fields, and the line itself after a tab.
func writeBlame(b *strings.Builder, porcelain []byte, text []string) (last int) {
	hash, author, date, n := "", "", "", 0
	for line := range bytes.Lines(porcelain) {
		s := strings.TrimSuffix(string(line), "\n")
		key, value, _ := strings.Cut(s, " ")
		switch {
		case strings.HasPrefix(s, "\t"):
			if n < 1 || n > len(text) || b.Len() > readBytesMax {
				return last
			}
			fmt.Fprintf(b, "%s\t%s\t%s\t%d\t%s\n", hash, author, date, n, text[n-1])
			last = n
		case key == "author":
			author = commitField(value)
		case key == "author-time":
			if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
				date = time.Unix(seconds, 0).UTC().Format(time.DateOnly)
			}
		case len(key) >= 40 && strings.Trim(key, "0123456789abcdef") == "":
			hash = key[:hashShown]
			if f := strings.Fields(value); len(f) >= 2 {
				n = parseCount(f[1])
			}
		}
	}
	return last
}
