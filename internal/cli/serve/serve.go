// Package serve is the program troupe-node: a node that serves run requests and resumes the
// unfinished runs of its state directory until it receives a stop signal.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/troupe-run/troupe/internal/bus/localserver"
	"github.com/troupe-run/troupe/internal/node"
	"github.com/troupe-run/troupe/internal/term"
)

// Run runs troupe-node and returns the exit code of the process. start starts its own server, if it has one.
func Run(args []string, start localserver.StartFunc) int {
	n := &program{cfg: node.Config{ResumeAll: true, StartServer: start}}
	c := n.command()
	c.SetArgs(args)
	err := c.Execute()
	if err == nil {
		return 0
	}
	code, hint := explainError(err)
	writeLine("error: " + node.NewMasker(n.cfg).MaskValues(err.Error()))
	if hint != "" {
		writeLine("hint: " + hint)
	}
	return code
}

// writeLine writes one line to stderr and escapes control characters in it. It ignores a write
// error, because there is no other place to report one.
func writeLine(text string) { _, _ = io.WriteString(os.Stderr, term.CleanLine(text)+"\n") }

// program holds the flags of the command.
type program struct {
	cfg        node.Config
	durability string
	pricing    string
	retainAge  string
	rates      struct{ requests, tokens string } // a minute, by provider and model
	retainSize string
	output     string
	verbose    bool
	drain      time.Duration
	setup      bool
	replicas   int
	http       httpFlags
	agents     agentFlags
	// claudeFiles: apply the files of Claude Code of the user who runs the node.
	claudeFiles bool
}

// serveUntilSignal runs the node until a signal.
func (n *program) serveUntilSignal() error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopping := make(chan struct{})
	go func() {
		first := <-signals
		cancel() // of a start in progress
		close(stopping)
		<-signals
		os.Exit(signalCode(first))
	}()
	if n.setup {
		if err := node.SetupServer(ctx, n.cfg, n.replicas); err != nil {
			return fmt.Errorf("%w: setup: %w", errNode, err)
		}
		return nil
	}
	lost := make(chan error, 1)
	n.cfg.OnConnectionLost = func(err error) { lost <- err }
	h, err := node.Start(ctx, n.cfg)
	if err != nil && ctx.Err() != nil {
		return nil // it received the signal before it had started
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNode, err)
	}
	if err := n.printReady(h); err != nil {
		return fmt.Errorf("%w: %w", errNode, errors.Join(err, h.Close()))
	}
	select {
	case err := <-lost:
		return errors.Join(err, closeLost(h))
	case <-stopping:
	}
	n.cfg.Logger.Info("stopping: work in progress ends here, and other nodes continue the rest", "within", n.drain)
	patience, enough := context.WithTimeout(context.Background(), n.drain)
	defer enough()
	if err := h.Drain(patience); err != nil {
		n.cfg.Logger.Warn("some work is still in progress; a person is asked about calls with an unknown outcome", "error", err)
	}
	if err := h.Close(); err != nil {
		return fmt.Errorf("%w: %w", errNode, err)
	}
	return nil
}

// lostGrace is how long a node that has lost a connection may take to close what it can.
const lostGrace = 10 * time.Second

// closeLost closes a node that can do nothing more: parts of it may wait for a connection that never answers.
func closeLost(h *node.Node) error {
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	select {
	case err := <-closed:
		return err
	case <-time.After(lostGrace):
		return nil // the end of the process closes the rest
	}
}

// signalCode is the exit code of a process that a signal killed.
func signalCode(s os.Signal) int {
	if s == syscall.SIGTERM {
		return 128 + int(syscall.SIGTERM)
	}
	return 128 + int(syscall.SIGINT)
}
