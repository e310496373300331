package embedded_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/bustest"
	"github.com/troupe-run/troupe/internal/bus/embedded"
	"github.com/troupe-run/troupe/internal/bus/names"
)

func openTestBuckets(t *testing.T) (*bus.Buckets, jetstream.JetStream, *nats.Conn) {
	t.Helper()
	e := startServer(t, embedded.Config{DontListen: true, Lazy: true})
	nc := connectAs(t, e, bus.RoleNode)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bus.OpenBuckets(t.Context(), js, bus.BucketConfig{}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.OpenBuckets(t.Context(), js, bus.BucketConfig{}) // what is there is fine
	if err != nil {
		t.Fatal(err)
	}
	return b, js, nc
}

// TestBucketsFromLeader: no read of shared state asks for a direct get.
func TestBucketsFromLeader(t *testing.T) {
	b, js, nc := openTestBuckets(t)
	direct, err := nc.SubscribeSync("$JS.API.DIRECT.>")
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range []jetstream.KeyValue{b.Shards, b.Nodes, b.Runs} {
		if _, err := kv.Put(t.Context(), "a.1", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if got, err := kv.Get(t.Context(), "a.1"); err != nil || string(got.Value()) != "x" {
			t.Errorf("%v, %v", got, err)
		}
	}
	putBlob(t, js, "run/hash", "blob")
	if got, err := b.Blobs.GetString(t.Context(), "run/hash"); err != nil || got != "blob" {
		t.Errorf("%q, %v", got, err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := direct.Pending(); n != 0 {
		t.Errorf("%d direct reads", n)
	}
}

// putBlob stores an object as its library names it, but does not let the library
// do so: where its goroutine starts late, it waits for ever (nats.go 1.55,
// resetPendingAcksOnReconnect).
func putBlob(t *testing.T, js jetstream.JetStream, name, data string) {
	t.Helper()
	names, digest := names.Names{}, sha256.Sum256([]byte(data))
	info, err := json.Marshal(jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: name}, Bucket: names.BlobStore(), NUID: "1",
		Size: uint64(len(data)), Chunks: 1, Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(digest[:])})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), names.BlobChunks("1"), []byte(data)); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), names.BlobMeta(name), info); err != nil {
		t.Fatal(err)
	}
}

func TestLeaseRenewal(t *testing.T) { bustest.Bubble(t, testRenewal) }

func testRenewal(t *testing.T) {
	b, js, _ := openTestBuckets(t)
	bucket := names.Names{}.ShardBucket()
	watch, err := b.Shards.Watch(t.Context(), "default.1")
	if err != nil {
		t.Fatal(err)
	}
	const long = 10 * time.Minute // nothing ends by it here
	revision, err := b.Shards.Create(t.Context(), "default.1", []byte("me"), jetstream.KeyTTL(long))
	if err != nil {
		t.Fatal(err)
	}
	next, err := bus.RenewKey(t.Context(), js, bucket, "default.1", []byte("me"), revision, long)
	if err != nil || next <= revision {
		t.Fatalf("%d after %d, %v", next, revision, err)
	}
	if _, err := bus.RenewKey(t.Context(), js, bucket, "default.1", []byte("me"), revision, bus.TTLMin); !errors.Is(err, bus.ErrRevision) {
		t.Error(err)
	}
	if _, err := bus.RenewKey(t.Context(), js, bucket, "a.*", nil, 0, bus.TTLMin); !errors.Is(err, names.ErrToken) {
		t.Error(err)
	}
	// Renewed, it still ends by itself, by the TTL that it was renewed with.
	if _, err := bus.RenewKey(t.Context(), js, bucket, "default.1", []byte("me"), next, bus.TTLMin); err != nil {
		t.Fatal(err)
	}
	late := time.After(time.Minute)
	for {
		select {
		case e := <-watch.Updates():
			if e == nil || e.Operation() == jetstream.KeyValuePut {
				continue
			}
			if err := watch.Stop(); err != nil {
				t.Error(err)
			}
			return
		case <-late:
			t.Fatal("the lease does not end")
		}
	}
}

// The buckets are those that the client library creates, except that no read of them asks a follower.
func TestBucketsAreThoseOfTheLibrary(t *testing.T) {
	b, js, _ := openTestBuckets(t)
	created, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "library", LimitMarkerTTL: bus.MarkerTTL, MaxBytes: bus.BucketBytesMax})
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "library", MaxBytes: bus.DefaultBlobBytesMax})
	if err != nil {
		t.Fatal(err)
	}
	configOf := func(stream string) jetstream.StreamConfig {
		s, err := js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		c.AllowDirect = false
		return c
	}
	for bucket, library := range map[string]string{"KV_" + b.Runs.Bucket(): "KV_" + created.Bucket(), "KV_" + b.Shards.Bucket(): "KV_" + created.Bucket(),
		"KV_" + b.Nodes.Bucket(): "KV_" + created.Bucket(), (names.Names{}).BlobStream(): "OBJ_library"} {
		got, want := configOf(bucket), configOf(library)
		want.Name, want.Subjects = got.Name, got.Subjects
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, the library makes %+v", bucket, got, want)
		}
	}
	if status, err := store.Status(t.Context()); err != nil || status.Bucket() != "library" {
		t.Error(status, err)
	}
}

// A node that is alone on its server has no bucket of live nodes, and a node that joins creates it. The bucket of throttle
// notices is created with the first one and found at the next start. Each stream is described on the disk once.
func TestBucketsOfANodeThatIsAlone(t *testing.T) {
	e := startServer(t, embedded.Config{DontListen: true, Lazy: true})
	nc, more := connectAs(t, e, bus.RoleNode), connectAs(t, e, bus.RoleNode)
	updates, err := nc.SubscribeSync("$JS.API.STREAM.UPDATE.>")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{Alone: true, Makers: []*nats.Conn{more}})
	if err != nil || b.Nodes != nil || b.Throttles != nil {
		t.Fatalf("%v, %v", b, err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if throttles, err := (bus.BucketConfig{Alone: true}).OpenThrottles(t.Context(), js); err != nil || throttles == nil {
		t.Fatalf("%v, %v", throttles, err)
	}
	if b, err = bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{Alone: true}); err != nil || b.Nodes != nil || b.Throttles == nil {
		t.Fatalf("%v, %v", b, err)
	}
	if b, err = bus.ConnectBuckets(t.Context(), nc, bus.BucketConfig{}); err != nil || b.Nodes == nil || b.Throttles == nil {
		t.Fatalf("%v, %v", b, err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := updates.Pending(); n != 0 {
		t.Errorf("%d streams were updated", n)
	}
}

// Direct reads of a bucket that something else created are disabled.
func TestDirectReadsOfAnExistingBucketAreDisabled(t *testing.T) {
	e := startServer(t, embedded.Config{DontListen: true, Lazy: true})
	nc := connectAs(t, e, bus.RoleNode)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	bucket := names.Names{}.RunBucket()
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: bucket, LimitMarkerTTL: bus.MarkerTTL, MaxBytes: bus.BucketBytesMax}); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.OpenBuckets(t.Context(), js, bus.BucketConfig{}); err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "KV_"+bucket)
	if err != nil || s.CachedInfo().Config.AllowDirect {
		t.Errorf("%v, %v", s.CachedInfo().Config.AllowDirect, err)
	}
}
