package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
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
	// ThrottleBytesMax is the most bytes of the bucket of throttle notices: it has few small keys.
	ThrottleBytesMax = 1 << 20
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
	// Alone: the server has one node, in the same process. Then there is no bucket of live nodes, and none of
	// throttle notices until the node has the first one to keep (see OpenThrottles).
	Alone bool
	// Makers are more connections that may create buckets: a server serves the requests of one connection one after
	// the other, and syncs each new bucket to the disk. Default: none.
	Makers []*nats.Conn
}

// Buckets are the shared state of a cluster, except the logs.
type Buckets struct {
	// Shards holds the shard leases, Nodes the live nodes; keys have a TTL (see RenewKey). Nodes is nil for a node that
	// is alone.
	Shards, Nodes jetstream.KeyValue
	// Runs is the index of runs: a hint, because only the logs are authoritative.
	Runs jetstream.KeyValue
	// Throttles holds the notices that model providers gave to nodes; keys have a TTL. It is nil for a node that is alone
	// and has kept none yet.
	Throttles jetstream.KeyValue
	// Blobs are payloads too large for an entry, by hash.
	Blobs jetstream.ObjectStore
}

// OpenBuckets creates missing buckets. In all of them reads go to the leader: the client
// library would create buckets whose reads a lagging follower may answer.
func OpenBuckets(ctx context.Context, js jetstream.JetStream, cfg BucketConfig) (*Buckets, error) {
	makers := []jetstream.JetStream{js}
	for _, nc := range cfg.Makers {
		more, err := jetstream.New(nc)
		if err != nil {
			return nil, fmt.Errorf("bus: %w", err)
		}
		makers = append(makers, more)
	}
	streams := cfg.bucketStreams()
	failed := make([]error, len(makers))
	var making sync.WaitGroup
	for i, maker := range makers {
		making.Go(func() {
			for n := i; n < len(streams); n += len(makers) {
				if err := cfg.makeStream(ctx, maker, streams[n]); err != nil {
					failed[i] = errors.Join(failed[i], fmt.Errorf("bus: %s: %w", streams[n].Name, err))
				}
			}
		})
	}
	making.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return cfg.bindBuckets(ctx, js)
}

// bindBuckets opens the buckets, which exist.
func (c BucketConfig) bindBuckets(ctx context.Context, js jetstream.JetStream) (b *Buckets, err error) {
	b = &Buckets{}
	bind := func(to *jetstream.KeyValue, bucket string) {
		if err == nil {
			if *to, err = js.KeyValue(ctx, bucket); err != nil {
				err = fmt.Errorf("bus: bucket %s: %w", bucket, err)
			}
		}
	}
	bind(&b.Shards, c.Names.ShardBucket())
	if !c.Alone {
		bind(&b.Nodes, c.Names.NodeBucket())
	}
	bind(&b.Runs, c.Names.RunBucket())
	if err != nil {
		return nil, err
	}
	if bind(&b.Throttles, c.Names.ThrottleBucket()); err != nil && (!c.Alone || !errors.Is(err, jetstream.ErrBucketNotFound)) {
		return nil, err
	}
	if b.Blobs, err = js.ObjectStore(ctx, c.Names.BlobStore()); err != nil {
		return nil, fmt.Errorf("bus: blobs %s: %w", c.Names.BlobStore(), err)
	}
	return b, nil
}

// OpenThrottles creates the bucket of throttle notices, if it is missing, and opens it.
func (c BucketConfig) OpenThrottles(ctx context.Context, js jetstream.JetStream) (jetstream.KeyValue, error) {
	if err := c.makeStream(ctx, js, c.throttleStream()); err != nil {
		return nil, fmt.Errorf("bus: %s: %w", c.Names.ThrottleBucket(), err)
	}
	throttles, err := js.KeyValue(ctx, c.Names.ThrottleBucket())
	if err != nil {
		return nil, fmt.Errorf("bus: bucket %s: %w", c.Names.ThrottleBucket(), err)
	}
	return throttles, nil
}

func (c BucketConfig) throttleStream() jetstream.StreamConfig {
	return c.keyStream(c.Names.ThrottleBucket(), ThrottleBytesMax)
}

// bucketStreams are the streams behind the buckets that OpenBuckets creates.
func (c BucketConfig) bucketStreams() []jetstream.StreamConfig {
	list := []jetstream.StreamConfig{c.keyStream(c.Names.ShardBucket(), BucketBytesMax), c.keyStream(c.Names.RunBucket(), BucketBytesMax), c.blobStream()}
	if !c.Alone {
		list = append(list, c.throttleStream(), c.keyStream(c.Names.NodeBucket(), BucketBytesMax))
	}
	return list
}

// keyStream is the stream behind a key-value bucket: as the client library would create it, but for direct reads. To
// disable them in a second step would sync the stream's description to the disk twice.
func (c BucketConfig) keyStream(bucket string, bytesMax int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: keyStreamName(bucket), Subjects: []string{"$KV." + bucket + ".>"}, MaxMsgsPerSubject: 1, MaxBytes: bytesMax, MaxMsgSize: -1, MaxMsgs: -1, MaxConsumers: -1,
		Replicas: max(c.Replicas, 1), AllowRollup: true, DenyDelete: true, Duplicates: duplicateWindow, Discard: jetstream.DiscardNew, AllowMsgTTL: true, SubjectDeleteMarkerTTL: MarkerTTL}
}

// blobStream is the stream behind the object store of blobs, likewise.
func (c BucketConfig) blobStream() jetstream.StreamConfig {
	store := c.Names.BlobStore()
	return jetstream.StreamConfig{Name: c.Names.BlobStream(), Subjects: []string{"$O." + store + ".C.>", "$O." + store + ".M.>"}, MaxBytes: cmp.Or(c.BlobBytesMax, DefaultBlobBytesMax),
		Replicas: max(c.Replicas, 1), Discard: jetstream.DiscardNew, AllowRollup: true}
}

// duplicateWindow is that of the client library's buckets.
const duplicateWindow = 2 * time.Minute

// keyStreamName is the stream behind a key-value bucket, as the client library names it.
func keyStreamName(bucket string) string { return "KV_" + bucket }

// makeStream creates a stream unless it exists, and disables direct reads of one that exists. The bucket of throttle
// notices falls back to memory: a store that was full before that bucket existed has no room for it, and its keys need
// not survive the server.
func (c BucketConfig) makeStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	there, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, want)
		var api *jetstream.APIError
		if want.Name == keyStreamName(c.Names.ThrottleBucket()) && errors.As(err, &api) && api.ErrorCode == codeNoRoom {
			want.Storage = jetstream.MemoryStorage
			_, err = js.CreateStream(ctx, want)
		}
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		there, err = js.Stream(ctx, want.Name) // another node was faster, maybe one of an older version
	}
	if err != nil || !there.CachedInfo().Config.AllowDirect {
		return err
	}
	cfg := there.CachedInfo().Config
	cfg.AllowDirect = false
	_, err = js.UpdateStream(ctx, cfg)
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
