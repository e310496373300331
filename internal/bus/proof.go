package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/names"
)

// Limits within which a server must stay.
const (
	// SkewMax is how far the server's clock, which stamps all logs, may differ from the node's
	// clock, whose timers depend on the stamps.
	SkewMax = 30 * time.Second
	// RoomPercent is how full a stream may be, in percent of its limit, before new runs and
	// children are refused.
	RoomPercent = 80
)

// ProofConfig says what to check.
type ProofConfig struct {
	// Conn is a connection that may request stream information. Required.
	Conn *nats.Conn
	// Names builds the names of what is checked. Default: prefix "troupe".
	Names names.Names
	// Pool and Streams are the logs. Default: DefaultPool, none.
	Pool    string
	Streams int
	// LogRoom returns how many bytes logs outside of the server hold, and how many they may hold.
	// Default: there are none.
	LogRoom func(context.Context) (used, most uint64, err error)
	// Lazy skips the check whether writes are synced.
	Lazy bool
	// Witness reports how servers store, if there is one.
	Witness ServerWitness
	// Want is the profile that the server must have. Default: any.
	Want Profile
}

// streamFacts holds what was found about the streams.
type streamFacts struct {
	streams     map[string]*jetstream.StreamInfo
	names       []string // of streams, sorted
	notices     string   // the stream of throttle notices, if there is one: only its layout is checked
	peers       []string // servers with a copy, sorted
	unhealthy   []string // the ones in peers that lag or cannot be reached
	minCopies   int      // of the stream with the fewest
	skew        time.Duration
	fullest     string // of the fullest stream beyond RoomPercent
	facts       map[string]ServerFacts
	factsSource string // how the facts were obtained, or why they were not
}

// ProveDurability checks what can be verified of a server's promise. The error says that the check
// itself failed, never that a promise does not hold.
func ProveDurability(ctx context.Context, cfg ProofConfig) (Proof, error) {
	s, err := cfg.gatherFacts(ctx)
	if err != nil {
		return Proof{}, fmt.Errorf("bus: prove: %w", err)
	}
	_, embedded := cfg.Witness.(nats.InProcessConnProvider) // the server is in this process
	p := Proof{Profile: profileOf(embedded, cfg.Lazy, s.minCopies)}
	p.Promise = p.Profile.Promise()
	p.Findings = append(p.Findings, cfg.checkProfile(p.Profile, s), cfg.checkVersions(s), cfg.checkSync(p.Profile, s))
	if !embedded {
		p.Findings = append(p.Findings, cfg.checkReplicas(s))
	}
	p.Findings = append(p.Findings, cfg.checkLayout(s), checkClock(s), cfg.checkSpace(ctx, s))
	return p, nil
}

// gatherFacts asks for all streams, and asks the witness for all servers that store one.
func (c *ProofConfig) gatherFacts(ctx context.Context) (streamFacts, error) {
	s := streamFacts{streams: map[string]*jetstream.StreamInfo{}, facts: map[string]ServerFacts{}}
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return s, err
	}
	if c.Pool == "" {
		c.Pool = names.DefaultPool
	}
	for n := range c.Streams {
		s.names = append(s.names, c.Names.BoxStream(c.Pool, n))
	}
	s.names = append(s.names, keyStreamName(c.Names.ShardBucket()), keyStreamName(c.Names.RunBucket()), c.Names.BlobStream())
	if _, alone := c.Witness.(nats.InProcessConnProvider); !alone { // see BucketConfig.Alone
		s.names = append(s.names, keyStreamName(c.Names.NodeBucket()))
	}
	peers, away := map[string]bool{}, map[string]bool{}
	for _, name := range s.names {
		began := time.Now()
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return s, fmt.Errorf("stream %s: %w", name, err)
		}
		info := stream.CachedInfo()
		s.addStream(name, info, peers, away)
		if !info.TimeStamp.IsZero() { // taken between the request and the reply
			s.skew = max(began.Sub(info.TimeStamp), time.Until(info.TimeStamp), s.skew)
		}
	}
	notices := keyStreamName(c.Names.ThrottleBucket()) // what it holds may be lost, so neither its copies nor its room count
	switch stream, err := js.Stream(ctx, notices); {
	case err == nil:
		s.notices, s.streams[notices] = notices, stream.CachedInfo()
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return s, fmt.Errorf("stream %s: %w", notices, err)
	}
	if len(peers) == 0 {
		peers[c.Conn.ConnectedServerName()] = true
	}
	s.peers, s.unhealthy = slices.Sorted(maps.Keys(peers)), slices.Sorted(maps.Keys(away))
	c.askWitness(ctx, &s)
	return s, nil
}

func (s *streamFacts) addStream(name string, info *jetstream.StreamInfo, peers, away map[string]bool) {
	s.streams[name] = info
	if n := max(info.Config.Replicas, 1); s.minCopies == 0 || n < s.minCopies {
		s.minCopies = n
	}
	if used, most := info.State.Bytes, info.Config.MaxBytes; s.fullest == "" && most > 0 && used/RoomPercent >= uint64(most)/100 {
		s.fullest = fmt.Sprintf("%s holds %d of %d MiB", name, used>>20, most>>20)
	}
	if info.Cluster == nil {
		return
	}
	if info.Cluster.Leader != "" {
		peers[info.Cluster.Leader] = true
	}
	for _, r := range info.Cluster.Replicas {
		peers[r.Name] = true
		if r.Offline || !r.Current {
			away[r.Name] = true
		}
	}
}

// askWitness has the witness report what it knows.
func (c *ProofConfig) askWitness(ctx context.Context, s *streamFacts) {
	at := c.Conn.ConnectedServerName()
	s.facts[at] = ServerFacts{Name: at, Version: c.Conn.ConnectedServerVersion()}
	if c.Witness == nil {
		s.factsSource = "a client cannot see it"
		return
	}
	list, err := c.Witness.ReportFacts(ctx, s.peers)
	for _, f := range list {
		s.facts[f.Name] = f
	}
	s.factsSource = "seen " + c.Witness.FactsSource()
	if err != nil {
		s.factsSource = strings.Join(strings.Fields(err.Error()), " ")
	}
}

const askSystem = "give the node a credential of the system account (--system-creds, --system-nkey, --system-user) or the servers' --monitor addresses"

func (c *ProofConfig) checkProfile(p Profile, s streamFacts) Finding {
	f := Finding{Check: "profile", Status: Proven, Detail: fmt.Sprintf("%s: %s", p, p.Promise())}
	if c.Want != "" && c.Want != p {
		return Finding{Check: f.Check, Status: Failed, Refuses: true, Remedy: "see docs/profiles.md",
			Detail: fmt.Sprintf("%s was asked for, and this is %s with %d copies of each log", c.Want, p, s.minCopies)}
	}
	return f
}

func (c *ProofConfig) checkVersions(s streamFacts) Finding {
	f := Finding{Check: "server version", Status: Proven, Refuses: true}
	var known, unknown, old []string
	for _, name := range s.peers {
		v := s.facts[name].Version
		if v == "" {
			unknown = append(unknown, name)
			continue
		}
		known = append(known, v)
		if why := versionProblem(v); why != "" {
			old = append(old, name+": "+why)
		}
	}
	at := c.Conn.ConnectedServerName()
	// a server that is not a peer relays what the peers store
	if why := versionProblem(s.facts[at].Version); why != "" && !slices.Contains(s.peers, at) {
		old = append(old, at+": "+why)
	}
	switch {
	case len(old) > 0:
		f.Status, f.Detail, f.Remedy = Failed, strings.Join(old, "; "), "upgrade nats-server"
	case len(unknown) > 0:
		f.Status, f.Detail, f.Remedy = Unproven, "not known of "+joinNames(unknown), askSystem
	default:
		slices.Sort(known)
		f.Detail = joinNames(slices.Compact(known)) + ", at least " + ServerMin + " is needed"
	}
	return f
}

func (c *ProofConfig) checkSync(p Profile, s streamFacts) Finding {
	f := Finding{Check: "durability", Status: Proven, Refuses: true}
	if p.IsLazy() {
		f.Detail, f.Remedy = "lazy, as asked: writes are acknowledged before they are on the disk", "--durability sync"
		return f
	}
	var lax, unknown []string
	for _, name := range s.peers {
		switch facts := s.facts[name]; {
		case !facts.JetStream:
			unknown = append(unknown, name)
		case !facts.Synced:
			lax = append(lax, fmt.Sprintf("%s syncs every %s", name, facts.SyncEvery))
		}
	}
	for _, name := range s.names {
		if s.streams[name].Config.PersistMode == jetstream.AsyncPersistMode {
			lax = append(lax, "stream "+name+" persists asynchronously")
		}
	}
	switch {
	case len(lax) > 0:
		f.Status, f.Detail = Failed, "a power loss may lose acknowledged writes: "+joinNames(lax)
		f.Remedy = "set jetstream.sync_interval to always there; or --durability lazy, which promises less"
	case len(unknown) > 0:
		f.Status, f.Detail, f.Remedy = Unproven, fmt.Sprintf("whether %s sync each write: %s", joinNames(unknown), s.factsSource), askSystem
	default:
		f.Detail = fmt.Sprintf("sync: each write is on the disk before it is acknowledged, %s", s.factsSource)
	}
	return f
}

func (c *ProofConfig) checkReplicas(s streamFacts) Finding {
	f := Finding{Check: "replicas", Status: Proven, Refuses: true, Detail: fmt.Sprintf("%d of each stream, bucket and store, on %s", s.minCopies, joinNames(s.peers))}
	var more []string
	for _, name := range s.names {
		if max(s.streams[name].Config.Replicas, 1) > s.minCopies {
			more = append(more, name)
		}
	}
	switch {
	case len(more) > 0:
		f.Status = Failed
		f.Detail = fmt.Sprintf("%s have more copies than the others, which have %d: the smallest number counts", joinNames(more), s.minCopies)
		f.Remedy = "nats stream edit NAME --replicas=3 for each, or make them by troupe-node --setup --replicas 3"
	case len(s.unhealthy) > 0: // a node starts despite this: tolerating it is the purpose of copies
		f.Status, f.Refuses, f.Remedy = Unproven, false, "bring it back, or wait until it has caught up"
		f.Detail = fmt.Sprintf("%d of each, but %s cannot be reached or is behind", s.minCopies, joinNames(s.unhealthy))
	}
	return f
}

// checkLayout checks for settings under which entries would be lost, read stale, or come from or go to somebody else.
func (c *ProofConfig) checkLayout(s streamFacts) Finding {
	f := Finding{Check: "streams", Status: Proven, Refuses: true,
		Detail: fmt.Sprintf("%d: stored in files, full ones refuse instead of dropping, reads go to the leader, no client deletes from logs or buckets, nothing is copied from or to other subjects", len(s.names))}
	var wrong []string
	for _, name := range s.names {
		wrong = append(wrong, layoutProblems(s.streams[name].Config)...)
	}
	if s.notices != "" {
		cfg := s.streams[s.notices].Config
		cfg.Storage = jetstream.FileStorage // memory will do: see makeStream
		wrong = append(wrong, layoutProblems(cfg)...)
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		f.Status, f.Detail, f.Remedy = Failed, strings.Join(wrong, "; "), "nats stream edit NAME, or move it away and let troupe-node --setup make it"
	}
	return f
}

// layoutProblems says what is wrong with the settings of a stream: of logs, of a bucket, or of blobs. A stream of logs
// has more settings, which the pool checks when it opens the stream.
func layoutProblems(cfg jetstream.StreamConfig) (wrong []string) {
	bucket, blobs := strings.HasPrefix(cfg.Name, "KV_"), strings.HasPrefix(cfg.Name, "OBJ_")
	for what, is := range map[string]bool{
		"is not stored in files":                         cfg.Storage != jetstream.FileStorage,
		"drops old entries when it is full":              cfg.Discard != jetstream.DiscardNew,
		"allows direct reads, which may be stale":        cfg.AllowDirect || cfg.MirrorDirect,
		"lets entries be deleted":                        !blobs && !cfg.DenyDelete, // the client library's object store does
		"drops entries by age":                           cfg.MaxAge != 0,
		"keeps no marks of keys that have expired":       bucket && cfg.SubjectDeleteMarkerTTL == 0,
		"takes entries from other streams":               cfg.Mirror != nil || len(cfg.Sources) > 0,
		"publishes its entries again":                    cfg.RePublish != nil,
		"stores entries at other subjects than they had": cfg.SubjectTransform != nil,
		"limits the size of its entries":                 (bucket || blobs) && cfg.MaxMsgSize > 0,
	} {
		if is {
			wrong = append(wrong, cfg.Name+" "+what)
		}
	}
	return wrong
}

func checkClock(s streamFacts) Finding {
	f := Finding{Check: "server clock", Status: Proven, Refuses: true,
		Detail: "no further from ours than " + max(s.skew, time.Millisecond).Round(time.Millisecond).String()}
	if s.skew > SkewMax {
		f.Status, f.Detail = Failed, fmt.Sprintf("it is %s from ours, at most %s may be: its stamps are the time of all limits and timers", s.skew.Round(time.Second), SkewMax)
		f.Remedy = "let both follow a time server"
	}
	return f
}

// checkSpace checks the free room. It never prevents a node from starting, because the node has
// runs to end.
func (c *ProofConfig) checkSpace(ctx context.Context, s streamFacts) Finding {
	f := Finding{Check: "room", Status: Proven, Detail: fmt.Sprintf("no stream has more than %d %% of its limit", RoomPercent)}
	js, err := jetstream.New(c.Conn)
	if err != nil {
		f.Status, f.Detail = Unproven, err.Error()
		return f
	}
	if c.LogRoom != nil {
		switch used, most, err := c.LogRoom(ctx); {
		case err != nil:
			f.Status, f.Detail = Unproven, err.Error()
			return f
		case used/RoomPercent >= most/100:
			f.Status, f.Remedy = Failed, "troupe prune, or free space on the disk of the state directory before the node starts"
			f.Detail = fmt.Sprintf("the logs hold %d of %d MiB: new runs are refused", used>>20, most>>20)
			return f
		}
		f.Detail = fmt.Sprintf("no stream has more than %d %% of its limit, nor have the logs in files", RoomPercent)
	}
	account, err := js.AccountInfo(ctx)
	switch {
	case s.fullest != "":
		f.Status, f.Detail, f.Remedy = Failed, s.fullest+": new runs are refused", "troupe prune, or a larger limit: nats stream edit NAME --max-bytes"
	case err != nil:
		f.Status, f.Detail, f.Remedy = Unproven, "the server does not report the limits of the account: "+err.Error(), "allow $JS.API.INFO"
	case account.Limits.MaxStore > 0 && account.Store/RoomPercent >= uint64(account.Limits.MaxStore)/100:
		f.Status, f.Remedy = Failed, "give the account more max_file"
		f.Detail = fmt.Sprintf("the account holds %d of %d MiB", account.Store>>20, account.Limits.MaxStore>>20)
	}
	return f
}
