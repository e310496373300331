package builtin

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/troupe-run/troupe/internal/redact"
	"github.com/troupe-run/troupe/tool"
)

// Limits of git_show.
const (
	showFilesMax  = 200      // files listed
	showPatchMax  = 48 << 10 // bytes of a patch shown
	showLineBytes = 400      // of a line of a patch are shown
	showReadMax   = 8 << 20  // bytes of a patch read
)

type showArgs struct {
	Rev  string `json:"rev"`
	Path string `json:"path,omitempty" jsonschema:"show the patch of this path"`
}

// gitShow makes git_show:
//
//	commit <hash>
//	author <name>
//	date YYYY-MM-DD
//	subject <text>
//
// then, without a path, one line for each file and a last line:
//
//	added<TAB>deleted<TAB>path             "-" for both in a binary file; 200 at most
//	[N files, +A -D]
//
// and with a path its patch, clipped at 48 KiB with the last line
// [patch clipped: N bytes]. A merge is compared with its first parent.
func (t *gitTools) gitShow() (tool.Tool, error) {
	return newReadTool("git_show", "One commit: its files and counts, or the patch of one path.",
		func(ctx context.Context, in showArgs) (string, error) {
			return t.readHistory(ctx, "git_show", in.Path, func(v *gitView, path string) (string, error) { return t.showText(ctx, v, path, in) })
		})
}

func (t *gitTools) showText(ctx context.Context, v *gitView, path string, in showArgs) (string, error) {
	f, err := v.checkRevision(ctx, in.Rev)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "commit %s\nauthor %s\ndate %s\nsubject %s\n", commitField(f[0]), commitField(f[2]), commitField(f[1]), commitField(f[3]))
	what := []string{"-z", "--numstat"}
	if in.Path != "" {
		what = []string{"--patch", "--src-prefix=a/", "--dst-prefix=b/"}
	}
	args := []string{"show", "--format=", "-m", "--first-parent", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules"}
	args = append(append(append(args, v.relativeFlags()...), what...), f[0])
	out, err := v.runLog(ctx, showReadMax, append(args, v.pathScope(path)...)...)
	if err != nil {
		return "", err
	}
	if in.Path != "" {
		t.writePatch(&b, out)
	} else {
		writeCounts(&b, out.text)
	}
	return b.String(), nil
}

// writeCounts lists the files of a commit.
func writeCounts(b *strings.Builder, text []byte) {
	tokens := bytes.Split(text, []byte{0})
	files, added, deleted := 0, 0, 0
	for i := 0; i < len(tokens); i++ {
		f := strings.SplitN(strings.TrimPrefix(string(tokens[i]), "\n"), "\t", 3)
		if len(f) != 3 {
			continue
		}
		if f[2] == "" {
			if i += 2; i >= len(tokens) {
				break
			}
			f[2] = string(tokens[i])
		}
		files++
		added += parseCount(f[0])
		deleted += parseCount(f[1])
		if files <= showFilesMax {
			fmt.Fprintf(b, "%s\t%s\t%s\n", f[0], f[1], printableName(f[2]))
		}
	}
	if files > showFilesMax {
		fmt.Fprintf(b, "[%d more files]\n", files-showFilesMax)
	}
	fmt.Fprintf(b, "[%d files, +%d -%d]", files, added, deleted)
}

// writePatch writes a patch. Each file in it is masked as that file would be.
func (t *gitTools) writePatch(b *strings.Builder, out gitOutput) {
	limit := b.Len() + showPatchMax
	var masked *redact.LineMasker
	inHunk := false
	for line := range bytes.Lines(out.text) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			masked, inHunk = t.mask.NewLineMasker(""), false
			if at := bytes.LastIndex(line, []byte(" b/")); at >= 0 {
				masked = t.mask.NewLineMasker(strings.Trim(string(line[at+3:]), `"`))
			}
		case masked == nil:
		case bytes.HasPrefix(line, []byte("@@")):
			inHunk = true
			if at := bytes.LastIndex(line, []byte("@@")); at > 0 {
				line = append(bytes.Clone(line[:at+2]), masked.MaskLine(line[at+2:])...)
			}
		case inHunk && len(line) > 0:
			line = append([]byte{line[0]}, masked.MaskLine(line[1:])...)
		}
		text := clipLine(line, showLineBytes) + "\n"
		if b.Len()+len(text) > limit {
			fmt.Fprintf(b, "[patch clipped: %d bytes]", len(out.text))
			return
		}
		b.WriteString(text)
	}
	if out.cut {
		fmt.Fprintf(b, "[patch clipped: more than %d bytes]", len(out.text))
	}
}
