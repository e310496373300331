package request

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/term"
)

// stdinWord is the argument for stdin.
const stdinWord = "-"

// stdinWait is how long a command with a prompt waits for the first byte of a pipe on its stdin. Many programs start
// others with a pipe to which they never write.
const stdinWait = 3 * time.Second

// readPrompt finds the prompt: the argument, stdin, or both. What comes through a pipe follows the argument.
func (r *Flags) readPrompt(a *console.Console, args []string) error {
	wantsStdin := slices.Contains(args, stdinWord)
	words := slices.DeleteFunc(slices.Clone(args), func(word string) bool { return word == stdinWord })
	switch {
	case len(words) > 1:
		return exit.UsageError("put the prompt in quotes", "one prompt is expected, not %d arguments", len(words))
	case len(args) == 0 && term.IsTTY(a.In):
		return exit.UsageError(`troupe run "what to do"; or - to read it from stdin`, "there is no prompt")
	}
	if len(words) > 0 { // what comes from stdin is data: it calls no command
		text, err := r.expandCommand(a, words[0])
		if err != nil {
			return err
		}
		words[0] = text
	}
	parts := words
	if wantsStdin || len(words) == 0 || isPiped(a.In) {
		text, late, err := readStdin(a.In, !wantsStdin && len(words) > 0)
		if err != nil {
			return err
		}
		if late {
			a.Say(a.ErrStyle.Yellow(fmt.Sprintf("nothing came on stdin within %s: going on without it; `troupe run PROMPT -` waits, and </dev/null has none", stdinWait)))
		}
		if len(words) > 0 && !wantsStdin && text != "" && !a.Quiet { // a shell loop over the same file would lose its input
			a.Say(a.ErrStyle.Dim(fmt.Sprintf("%d bytes of stdin follow the prompt; </dev/null keeps them out", len(text))))
		}
		parts = append(parts, text)
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return strings.TrimSpace(part) == "" })
	if r.Request.Prompt = strings.Join(parts, "\n\n"); r.Request.Prompt == "" {
		return exit.UsageError(`troupe run "what to do"`, "the prompt is empty")
	}
	return nil
}

// isPiped reports whether stdin is a pipe or a file: what a shell connects for `cat notes | troupe run "…"`.
func isPiped(in *os.File) bool {
	if in == nil {
		return false
	}
	info, err := in.Stat()
	return err == nil && (info.Mode()&os.ModeNamedPipe != 0 || info.Mode().IsRegular())
}

// readStdin reads a prompt. With optional it gives up if no byte arrives within stdinWait: late.
func readStdin(in *os.File, optional bool) (text string, late bool, err error) {
	if !optional {
		text, err = readAll(in)
		return text, false, err
	}
	type outcome struct {
		text string
		err  error
	}
	began, done := make(chan struct{}, 1), make(chan outcome, 1)
	go func() { // it may read until the process ends
		text, err := readAll(&noticingReader{in, began})
		done <- outcome{text, err}
	}()
	clock := time.NewTimer(stdinWait)
	defer clock.Stop()
	select {
	case o := <-done:
		return o.text, false, o.err
	case <-clock.C:
		return "", true, nil
	case <-began:
		o := <-done
		return o.text, false, o.err
	}
}

// noticingReader tells once when the first bytes arrive.
type noticingReader struct {
	in    io.Reader
	began chan<- struct{}
}

func (r *noticingReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if n > 0 {
		select {
		case r.began <- struct{}{}:
		default:
		}
	}
	return n, err
}

func readAll(in io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(in, promptMax+1))
	if err != nil {
		return "", fmt.Errorf("read the prompt: %w", err)
	}
	if len(data) > promptMax {
		return "", exit.UsageError("put long material into a file of the directory",
			"the prompt has more than %d bytes", promptMax)
	}
	return strings.TrimSpace(string(data)), nil
}
