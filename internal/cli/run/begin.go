package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// Begin begins a run for a screen that owns the terminal: it does what the command start does with these flags and this
// prompt ("": none), reads no input, and returns what the command says instead of printing it. No setting carries over from
// an earlier run, and several may begin at once.
func (cs *Commands) Begin(settings ApplySettings) func(ctx context.Context, flags []string, prompt string) (client.RunAccepted, string, error) {
	return func(ctx context.Context, words []string, prompt string) (accepted client.RunAccepted, notes string, err error) {
		if strings.TrimSpace(prompt) == "-" {
			return accepted, "", exit.UsageError("write what to do", "the task is read from here, not from stdin")
		}
		sessions := *cs.Sessions
		quiet := Commands{Console: cs.Console, Sessions: &sessions, Origins: &request.Origins{}}
		said, err := captureConsole(&quiet)
		if err != nil {
			return accepted, "", err
		}
		accepted, err = quiet.begin(ctx, settings, words, prompt)
		notes, failed := said()
		return accepted, notes, errors.Join(err, failed)
	}
}

// ApplySettings sets the flags of a command that were not given from the user's settings, and what of them is no flag in
// sessions and origins.
type ApplySettings func(c *cobra.Command, formats []string, sessions *session.Opener, origins *request.Origins) error

// captureConsole replaces the console by one whose lines are returned by the function, which ends it.
func captureConsole(cs *Commands) (said func() (string, error), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	console := *cs.Console
	console.Err, console.Output, console.ErrStyle = w, "text", term.Style{}
	cs.Console = &console
	var text []byte
	var readErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, readErr = io.ReadAll(r)
	}()
	return func() (string, error) {
		err := w.Close()
		<-done
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return strings.Join(lines, "; "), errors.Join(err, readErr, r.Close())
	}, nil
}

// begin begins a run on a node that is running.
func (cs *Commands) begin(ctx context.Context, settings ApplySettings, words []string, prompt string) (accepted client.RunAccepted, err error) {
	c, flags := cs.startCommand()
	if err := c.ParseFlags(words); err != nil {
		return accepted, command.ExplainFlagError(c, err)
	}
	if err := settings(c, strings.Fields(command.RunFormats), cs.Sessions, cs.Origins); err != nil {
		return accepted, err
	}
	var args []string
	if prompt != "" {
		args = []string{prompt}
	}
	if err := flags.Complete(cs.Console, cs.Origins, c, args); err != nil {
		return accepted, err
	}
	err = cs.withFork(flags, func() error {
		s, err := cs.Sessions.Open(ctx, session.ToJoin)
		if err != nil {
			return err
		}
		defer s.Client.Close()
		cs.applyModelSetting(&flags.Request, s)
		accepted, err = cs.sendRequest(s, flags)
		return err
	})
	return accepted, err
}
