package control

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/control/runindex"
	"github.com/troupe-run/troupe/internal/test/blobs"
	"github.com/troupe-run/troupe/mailbox"
	"github.com/troupe-run/troupe/mailbox/memory"
)

// startEmbedded is a server of this test alone, which only this process reaches.
func startEmbedded(t *testing.T) *embedded.Server {
	t.Helper()
	return embeddedAs(t, embedded.Config{DontListen: true})
}

func embeddedAs(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	cfg.StateDir = t.TempDir()
	e, err := embedded.Start(cfg)
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

// dialRole connects in a role.
func dialRole(t *testing.T, e *embedded.Server, role bus.Role) *nats.Conn {
	t.Helper()
	nc, err := e.Connect(role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func bucketsOf(t *testing.T, e *embedded.Server) *bus.Buckets {
	t.Helper()
	b, err := bus.ConnectBuckets(t.Context(), dialRole(t, e, bus.RoleNode), bus.BucketConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fullStore is a log store that reports a given usage.
type fullStore struct {
	mailbox.Store
	percent uint64
}

func (f fullStore) Room(context.Context) (used, most uint64, err error) { return f.percent, 100, nil }

// TestAttachmentIsRefusedWithoutRoomForTheRun: attachments that are sent before a run
// are refused as the run would be, and none of them is kept (PROTOCOL P16).
func TestAttachmentIsRefusedWithoutRoomForTheRun(t *testing.T) {
	buckets := bucketsOf(t, startEmbedded(t))
	blobs, data := blobs.New(), []byte("hello")
	for percent, code := range map[uint64]string{mailbox.RoomPercent: "", mailbox.RoomPercent + 1: client.CodeLimit} {
		c := newParts(&Config{Post: fullStore{memory.New(memory.Config{}), percent}, Runs: runindex.Open(buckets), Blobs: blobs})
		run := client.NewID()
		_, err := c.attachments.attachPart(t.Context(), client.AttachRequest{RunID: run, Data: data})
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

// failingStore is a log store in which one read fails, after a given number of reads.
type failingStore struct {
	mailbox.Store
	after int
}

var errBlink = errors.New("no leader")

func (b *failingStore) Read(ctx context.Context, at mailbox.Address, after, upTo uint64, each func(mailbox.Message) error) error {
	if b.after--; b.after == -1 {
		return errBlink
	}
	return b.Store.Read(ctx, at, after, upTo, each)
}

// TestAnErrorOfTheLogsTakesNoAttachmentBack: parts that were acknowledged stay,
// unless the run is known to be deleted.
func TestAnErrorOfTheLogsTakesNoAttachmentBack(t *testing.T) {
	buckets := bucketsOf(t, startEmbedded(t))
	blobs, run, first := blobs.New(), client.NewID(), []byte("first")
	logs := &failingStore{Store: memory.New(memory.Config{}), after: 100}
	c := newParts(&Config{Post: logs, Runs: runindex.Open(buckets), Blobs: blobs})
	if _, err := c.attachments.attachPart(t.Context(), client.AttachRequest{RunID: run, Data: first}); err != nil {
		t.Fatal(err)
	}
	logs.after = 1 // the first reading is before the part is kept
	if _, err := c.attachments.attachPart(t.Context(), client.AttachRequest{RunID: run, Data: []byte("second")}); !errors.Is(err, errBlink) {
		t.Fatalf("the second part: %v", err)
	}
	if _, _, err := blobs.Get(t.Context(), run, mailbox.BlobRef(first), 0, 10); err != nil {
		t.Errorf("the first part, which was acknowledged: %v", err)
	}
}
