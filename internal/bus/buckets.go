package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/names"
)

const (
	// DefaultLogBytesMax is the most bytes of all logs of a pool together.
	DefaultLogBytesMax = 2 << 30
	// DefaultBlobBytesMax is the most bytes of all blobs together.
	DefaultBlobBytesMax = 2 << 30
	// BucketBytesMax is the most bytes of one key-value bucket.
	BucketBytesMax = 16 << 20
	// GateBytesMax is the most bytes of the bucket of throttle notices: it has few small keys.
	GateBytesMax = 1 << 20
	// MarkerTTL is how long the marker of an expired key stays; without a marker the server
	// accepts no TTL for a key at all.
	MarkerTTL = time.Minute
	// TTLMin is the shortest TTL of a key; the server truncates TTLs to whole seconds.
	TTLMin = time.Second
)

// ErrRevision says that the key has another revision than the one expected, or that another
// write to it is in progress. On replicated buckets even the only writer may receive it (code
// 10164): it does not say whether the write took effect, so read the key and decide by its
// value.
var ErrRevision = errors.New("bus: the key has another revision")

// BucketConfig is the configuration of the buckets.
type BucketConfig struct {
	// BlobBytesMax is the most bytes of all blobs. Default DefaultBlobBytesMax.
	BlobBytesMax int64
	// Names of the buckets. Default: prefix "troupe".
	Names names.Names
	// Replicas of each. Default 1.
	Replicas int
}

// Buckets are the shared state of a cluster, except the logs.
type Buckets struct {
	// Shards holds the shard leases, Nodes the live nodes; keys have a TTL (see RenewKey).
	Shards, Nodes jetstream.KeyValue
	// Runs is the index of runs: a hint, because only the logs are authoritative.
	Runs jetstream.KeyValue
	// Gates holds the notices that model providers gave to nodes; keys have a TTL.
	Gates jetstream.KeyValue
	// Blobs are payloads too large for an entry, by hash.
	Blobs jetstream.ObjectStore
}

// OpenBuckets creates missing buckets. In all of them reads go to the leader: the client
// library would create buckets whose reads a lagging follower may answer.
func OpenBuckets(ctx context.Context, js jetstream.JetStream, cfg BucketConfig) (*Buckets, error) {
	if cfg.BlobBytesMax == 0 {
		cfg.BlobBytesMax = DefaultBlobBytesMax
	}
	var b Buckets
	for _, kv := range []struct {
		to     *jetstream.KeyValue
		bucket string
	}{
		{&b.Shards, cfg.Names.ShardBucket()}, {&b.Nodes, cfg.Names.NodeBucket()}, {&b.Runs, cfg.Names.RunBucket()},
		{&b.Gates, cfg.Names.ThrottleBucket()},
	} {
		_, err := js.KeyValue(ctx, kv.bucket)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			err = createBucket(ctx, js, kv.bucket, cfg)
		}
		if err == nil {
			err = disableDirectReads(ctx, js, "KV_"+kv.bucket)
		}
		if err == nil {
			*kv.to, err = js.KeyValue(ctx, kv.bucket)
		}
		if err != nil {
			return nil, fmt.Errorf("bus: bucket %s: %w", kv.bucket, err)
		}
	}
	if err := b.openBlobs(ctx, js, cfg); err != nil {
		return nil, fmt.Errorf("bus: blobs %s: %w", cfg.Names.BlobStore(), err)
	}
	return &b, nil
}

// createBucket creates a bucket. The bucket of throttle notices falls back to memory: a store that
// was full before that bucket existed has no room for it, and its keys need not survive the
// server.
func createBucket(ctx context.Context, js jetstream.JetStream, bucket string, cfg BucketConfig) error {
	kv := jetstream.KeyValueConfig{Bucket: bucket, LimitMarkerTTL: MarkerTTL, MaxBytes: BucketBytesMax, Replicas: cfg.Replicas}
	gates := bucket == cfg.Names.ThrottleBucket()
	if gates {
		kv.MaxBytes = GateBytesMax
	}
	_, err := js.CreateKeyValue(ctx, kv)
	var api *jetstream.APIError
	if gates && errors.As(err, &api) && api.ErrorCode == codeNoRoom {
		kv.Storage = jetstream.MemoryStorage
		_, err = js.CreateKeyValue(ctx, kv)
	}
	if errors.Is(err, jetstream.ErrBucketExists) { // another node was faster
		return nil
	}
	return err
}

// codeNoRoom is what a server answers when a stream's reservation does not fit
// its store.
const codeNoRoom = 10047

// ConnectBuckets is OpenBuckets on a connection.
func ConnectBuckets(ctx context.Context, nc *nats.Conn, cfg BucketConfig) (*Buckets, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	return OpenBuckets(ctx, js, cfg)
}

// OnConnection returns the lease and node buckets of b on another connection, so that requests to
// them do not queue behind other traffic.
func (b *Buckets) OnConnection(ctx context.Context, js jetstream.JetStream, names names.Names) (*Buckets, error) {
	over := *b
	for bucket, kv := range map[string]*jetstream.KeyValue{names.ShardBucket(): &over.Shards, names.NodeBucket(): &over.Nodes} {
		var err error
		if *kv, err = js.KeyValue(ctx, bucket); err != nil {
			return nil, fmt.Errorf("bus: bucket %s: %w", bucket, err)
		}
	}
	return &over, nil
}

func (b *Buckets) openBlobs(ctx context.Context, js jetstream.JetStream, cfg BucketConfig) error {
	name := cfg.Names.BlobStore()
	_, err := js.ObjectStore(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: name, MaxBytes: cfg.BlobBytesMax, Replicas: cfg.Replicas,
		})
		if errors.Is(err, jetstream.ErrBucketExists) {
			err = nil
		}
	}
	if err == nil {
		err = disableDirectReads(ctx, js, "OBJ_"+name)
	}
	if err == nil {
		b.Blobs, err = js.ObjectStore(ctx, name)
	}
	return err
}

// disableDirectReads disables direct reads of a stream.
func disableDirectReads(ctx context.Context, js jetstream.JetStream, stream string) error {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	cfg := s.CachedInfo().Config
	if !cfg.AllowDirect {
		return nil
	}
	cfg.AllowDirect = false
	_, err = js.UpdateStream(ctx, cfg)
	return err
}

// RenewKey writes a key that has the given revision, and sets its TTL again. The Update of the
// client library drops the TTL: a lease renewed with it never ends.
func RenewKey(ctx context.Context, js jetstream.JetStream, bucket, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	subject, err := names.KVSubject(bucket, key)
	if err != nil {
		return 0, fmt.Errorf("bus: renew: %w", err)
	}
	ack, err := js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: value},
		jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithMsgTTL(max(ttl, TTLMin)))
	if IsConflict(err) {
		return 0, fmt.Errorf("bus: renew %s: %w: %w", key, ErrRevision, err)
	}
	if err == nil {
		err = CheckAck(ack, "KV_"+bucket, revision)
	}
	if err != nil {
		return 0, fmt.Errorf("bus: renew %s: %w", key, err)
	}
	return ack.Sequence, nil
}

// PutWithTTL writes a key that has a single writer, with a TTL.
func PutWithTTL(ctx context.Context, js jetstream.JetStream, bucket, key string, value []byte, ttl time.Duration) error {
	subject, err := names.KVSubject(bucket, key)
	if err != nil {
		return fmt.Errorf("bus: put: %w", err)
	}
	ack, err := js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: value}, jetstream.WithMsgTTL(max(ttl, TTLMin)))
	if err == nil {
		err = CheckAck(ack, "KV_"+bucket, 0)
	}
	if err != nil {
		return fmt.Errorf("bus: put %s: %w", key, err)
	}
	return nil
}

// codeSequenceInProcess is what replicated streams answer instead of 10071.
const codeSequenceInProcess = 10164
