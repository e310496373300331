//go:build unix

package process

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOutputIsKeptForALateReader: the program has ended and the time to drain
// its output is over before the reader of the pipe got a turn. What the program wrote
// is kept.
func TestOutputIsKeptForALateReader(t *testing.T) {
	t.Parallel()
	s, err := newPipeReader(100, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.w.WriteString("open"); err != nil {
		t.Fatal(err)
	}
	if err := s.r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	s.startReading()
	<-s.done
	if err := s.r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := string(s.kept.joinEnds()); got != "open" {
		t.Errorf("kept is %q", got)
	}
}

// TestAFullPipeIsKeptWhoseTimeIsOver: all that a pipe holds is read, although another process keeps it open.
func TestAFullPipeIsKeptWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	s, err := newPipeReader(pipeBytesMax, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.w.Write(make([]byte, pipeBytesMax)); err != nil {
		t.Fatal(err)
	}
	other, err := unix.Dup(int(s.w.Fd())) // the process that keeps it open
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(other) }()
	if err := s.r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	s.startReading()
	<-s.done
	if s.kept.total != pipeBytesMax {
		t.Errorf("%d bytes are kept", s.kept.total)
	}
	if err := s.r.Close(); err != nil {
		t.Error(err)
	}
}
