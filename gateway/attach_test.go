package gateway

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/bus"
	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// embedded is a server of this test alone, which only this process reaches.
func embedded(t *testing.T) *bus.Embedded {
	t.Helper()
	return embeddedAs(t, bus.EmbeddedConfig{DontListen: true})
}

func embeddedAs(t *testing.T, cfg bus.EmbeddedConfig) *bus.Embedded {
	t.Helper()
	cfg.StateDir = t.TempDir()
	e, err := bus.StartEmbedded(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// dial connects in a role.
func dial(t *testing.T, e *bus.Embedded, role bus.Role) *nats.Conn {
	t.Helper()
	nc, err := e.Connect(role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func bucketsOf(t *testing.T, e *bus.Embedded) *bus.Buckets {
	t.Helper()
	b, err := bus.ConnectBuckets(t.Context(), dial(t, e, bus.RoleNode), bus.BucketConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// full are logs of which so much is in use.
type full struct {
	mailbox.Store
	percent uint64
}

func (f full) Room(context.Context) (used, most uint64, err error) { return f.percent, 100, nil }

// TestNothingIsAttachedWhereThereIsNoRoomForTheRun: what is sent before a run is
// refused as the run would be, and nothing of it stays (PROTOCOL P16).
func TestNothingIsAttachedWhereThereIsNoRoomForTheRun(t *testing.T) {
	buckets := bucketsOf(t, embedded(t))
	blobs, data := memory.NewBlobs(), []byte("hello")
	for percent, code := range map[uint64]string{mailbox.RoomPercent: "", mailbox.RoomPercent + 1: client.CodeLimit} {
		c := &Control{cfg: Config{Post: full{memory.New(memory.Config{}), percent}, Runs: OpenRuns(buckets), Blobs: blobs}}
		run := client.NewID()
		_, err := c.attach(t.Context(), client.AttachRequest{RunID: run, Data: data})
		var refused *client.Error
		if errors.As(err, &refused) != (code != "") || refused != nil && refused.Code != code {
			t.Errorf("%d %%: %v", percent, err)
		}
		_, _, err = blobs.Get(t.Context(), run, mailbox.BlobRef(data), 0, 10)
		if kept := !errors.Is(err, mailbox.ErrNoBlob); kept != (code == "") {
			t.Errorf("%d %%: kept %v, %v", percent, kept, err)
		}
	}
}

// blinking are logs that cannot be read once, after so many readings.
type blinking struct {
	mailbox.Store
	after int
}

var errBlink = errors.New("no leader")

func (b *blinking) Read(ctx context.Context, at mailbox.Address, after, upTo uint64, each func(mailbox.Message) error) error {
	if b.after--; b.after == -1 {
		return errBlink
	}
	return b.Store.Read(ctx, at, after, upTo, each)
}

// TestAnErrorOfTheLogsTakesNoAttachmentBack: parts that were acknowledged stay,
// unless the run is known to be deleted.
func TestAnErrorOfTheLogsTakesNoAttachmentBack(t *testing.T) {
	buckets := bucketsOf(t, embedded(t))
	blobs, run, first := memory.NewBlobs(), client.NewID(), []byte("first")
	logs := &blinking{Store: memory.New(memory.Config{}), after: 100}
	c := &Control{cfg: Config{Post: logs, Runs: OpenRuns(buckets), Blobs: blobs}}
	if _, err := c.attach(t.Context(), client.AttachRequest{RunID: run, Data: first}); err != nil {
		t.Fatal(err)
	}
	logs.after = 1 // the first reading is before the part is kept
	if _, err := c.attach(t.Context(), client.AttachRequest{RunID: run, Data: []byte("second")}); !errors.Is(err, errBlink) {
		t.Fatalf("the second part: %v", err)
	}
	if _, _, err := blobs.Get(t.Context(), run, mailbox.BlobRef(first), 0, 10); err != nil {
		t.Errorf("the first part, which was acknowledged: %v", err)
	}
}
