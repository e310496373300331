//go:build unix

package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/statedir"
)

// fullDir makes the test binary a process whose embedded server meets a disk that
// takes no more: a limit on the size of files, which needs no privilege.
const fullDir = "TROUPE_TEST_FULL_DIR"

func init() { children[fullDir] = fillDisk }

const (
	filesMost       = 64 << 10 // the largest file while the disk is full
	entryBig        = 8 << 10
	recoveryTimeout = patience
)

func limitFiles(most uint64) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = min(most, l.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
}

// fillDisk is the child: it publishes until nothing is acknowledged any more, makes
// room again, and expects the same connection to go on.
func fillDisk(dir string) error {
	told := make(chan statedir.DiskState, 64)
	e, err := embedded.Start(embedded.Config{StateDir: dir, Port: embedded.FreePort, OnDiskChange: func(d statedir.DiskState) { told <- d }})
	if err != nil {
		return err
	}
	where := e.URL()
	nc, err := e.Connect(bus.RoleNode)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*recoveryTimeout)
	defer cancel()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"troupe.box.x"}})
	if err != nil {
		return err
	}
	if err := limitFiles(filesMost); err != nil {
		return err
	}
	acked := uint64(0)
	for len(told) == 0 && ctx.Err() == nil { // an entry without an answer does not say that the disk is full
		if publishUntilAcked(ctx, js, time.Second) == nil {
			acked++
		}
	}
	d, err := awaitDiskReport(told)
	if err != nil || d.Failed.IsZero() || !strings.Contains(d.Why, dir) || d.Remedy == "" {
		return fmt.Errorf("after %d entries the disk is told as %+v: %w", acked, d, err)
	}
	if err := statedir.ProbeDisk(dir); !errors.Is(err, statedir.ErrDisk) {
		return fmt.Errorf("the probe found nothing: %w", err)
	}
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	if d, err := awaitDiskReport(told); err != nil || !d.Failed.IsZero() {
		return fmt.Errorf("with room the disk is told as %+v: %w", d, err)
	}
	if err := publishUntilAcked(ctx, js, recoveryTimeout); err != nil {
		return fmt.Errorf("with room the same connection cannot publish: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil || info.State.Msgs < acked+1 {
		return fmt.Errorf("%d entries were acknowledged, there are %d: %w", acked+1, info.State.Msgs, err)
	}
	if now := e.URL(); now != where {
		return fmt.Errorf("it listened at %s, and now at %s", where, now)
	}
	return e.Close()
}

func awaitDiskReport(told chan statedir.DiskState) (statedir.DiskState, error) {
	select {
	case d := <-told:
		return d, nil
	case <-time.After(recoveryTimeout):
		return statedir.DiskState{}, errors.New("nothing is told")
	}
}

// publishUntilAcked publishes until an entry is acknowledged, or for so long.
func publishUntilAcked(ctx context.Context, js jetstream.JetStream, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		one, cancel := context.WithTimeout(ctx, time.Second)
		_, err := js.Publish(one, "troupe.box.x", make([]byte, entryBig))
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// TestServerSurvivesAFullDisk: nats-server turns its store off at the first write that
// fails, and tells nobody who publishes. It is started again when there is room.
func TestServerSurvivesAFullDisk(t *testing.T) {
	t.Parallel() // it waits more than it works
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fullDir+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
