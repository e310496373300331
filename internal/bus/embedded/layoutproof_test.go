package embedded_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// TestAttackAForeignStreamInThePlaceOfABucket: it has the name and the subjects of the bucket, and a setting with which
// entries come from or go to somebody else, or are lost.
func TestAttackAForeignStreamInThePlaceOfABucket(t *testing.T) {
	t.Parallel()
	e := startCluster(t, true)
	nc := e.createStreams(1, nil)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	n := names.Names{}
	for _, c := range []struct {
		stream, says string
		change       func(*jetstream.StreamConfig)
	}{
		{"KV_" + n.RunBucket(), "publishes its entries again", func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "spy.>"}
		}},
		{"KV_" + n.ShardBucket(), "takes entries from other streams", func(c *jetstream.StreamConfig) {
			c.Sources = []*jetstream.StreamSource{{Name: "FOREIGN", FilterSubject: "foreign.x"}}
		}},
		{"KV_" + n.NodeBucket(), "takes entries from other streams", func(c *jetstream.StreamConfig) {
			c.Subjects, c.SubjectDeleteMarkerTTL, c.Mirror = nil, 0, &jetstream.StreamSource{Name: "FOREIGN"} // a mirror has no markers
		}},
		{n.BlobStream(), "stores entries at other subjects", func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "$O." + n.BlobStore() + ".C.>", Destination: "$O." + n.BlobStore() + ".D.>"}
		}},
		{n.BlobStream(), "limits the size of its entries", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100 }},
		{"KV_" + n.RunBucket(), "limits the size of its entries", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 100 }},
		{"KV_" + n.RunBucket(), "lets entries be deleted", func(c *jetstream.StreamConfig) { c.DenyDelete = false }},
		{"KV_" + n.ThrottleBucket(), "lets entries be deleted", func(c *jetstream.StreamConfig) { c.DenyDelete = false }},
		{"KV_" + n.ThrottleBucket(), "publishes its entries again", func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "spy.>"}
		}},
		{"TROUPE_BOX_DEFAULT_0", "publishes its entries again", func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "spy.>"}
		}},
		{"KV_" + n.ThrottleBucket(), "", func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
	} {
		s, err := js.Stream(t.Context(), c.stream)
		if err != nil {
			t.Fatal(err)
		}
		ours := s.CachedInfo().Config
		replace := func(cfg jetstream.StreamConfig) {
			t.Helper()
			if err := js.DeleteStream(t.Context(), c.stream); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(c.says, err)
			}
		}
		foreign := ours
		c.change(&foreign)
		replace(foreign)
		err = proveDurability(t, bus.ProofConfig{Conn: nc, Witness: e.monitorURLs()}).Err()
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.stream, err)
		case c.says != "" && (!errors.Is(err, bus.ErrUnfit) || !strings.Contains(err.Error(), c.stream+" "+c.says)):
			t.Errorf("%s: %v, want %q", c.stream, err, c.says)
		}
		replace(ours)
	}
	if err := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: e.monitorURLs()}).Err(); err != nil {
		t.Error(err)
	}
}

// TestBucketsOfTheClientLibraryAreFit: an older troupe made its buckets with the client library, and none for notices.
func TestBucketsOfTheClientLibraryAreFit(t *testing.T) {
	t.Parallel()
	e := startCluster(t, true)
	nc := e.createStreams(1, nil)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	n := names.Names{}
	for _, bucket := range []string{n.ShardBucket(), n.NodeBucket(), n.RunBucket()} {
		if err := js.DeleteKeyValue(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucket, LimitMarkerTTL: bus.MarkerTTL, MaxBytes: bus.BucketBytesMax}); err != nil {
			t.Fatal(err)
		}
	}
	if err := js.DeleteObjectStore(t.Context(), n.BlobStore()); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: n.BlobStore(), MaxBytes: bus.DefaultBlobBytesMax}); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.OpenBuckets(t.Context(), js, bus.BucketConfig{Replicas: 1}); err != nil { // it disables direct reads
		t.Fatal(err)
	}
	for range 2 { // with and without a bucket for notices
		if err := proveDurability(t, bus.ProofConfig{Conn: nc, Witness: e.monitorURLs()}).Err(); err != nil {
			t.Error(err)
		}
		if err := js.DeleteKeyValue(t.Context(), n.ThrottleBucket()); err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
			t.Fatal(err)
		}
	}
}
