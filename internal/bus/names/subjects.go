// Package names builds every subject, stream, bucket and consumer name of troupe on NATS, and
// parses them. No other package builds one.
package names

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/mailbox"
)

// DefaultPrefix is the first token of every subject and name, unless set otherwise.
const DefaultPrefix = "troupe"

// TokenBytesMax is the most bytes a token of a subject may have.
const TokenBytesMax = 63

// DefaultPool is the pool of runs that are not bound to a machine.
const DefaultPool = "default"

// What the metadata of a box stream must contain; compared whenever a pool is opened.
const (
	MetaShards  = "troupe-shards"
	MetaStreams = "troupe-streams"
)

// AgentsSubjects matches the whole Synadia Agent Protocol, DiscoverySubjects the discovery of
// NATS services. Neither has our prefix.
const (
	AgentsSubjects    = "agents.>"
	HeartbeatSubjects = "agents.hb.>"
	DiscoverySubjects = "$SRV.>"
	boxToken          = "box"
	eventToken        = "evt"
	contentToken      = "content"
	commandToken      = "cmd"
	ownerToken        = "as"
	triggerToken      = "trigger"
	triggerTokensMax  = 4
	answerToken       = "answer"
	storedToken       = "stored"
	boxSubjectTokens  = 6
)

var (
	// ErrToken says that a name cannot be a token of a subject. Tokens are 1 to 63 of a-z,
	// 0-9, '-' and '_', so that no wildcard, dot or space gets into a subject, and no two
	// tokens differ only in case.
	ErrToken = errors.New("names: not a token of [a-z0-9_-]{1,63}")
	// ErrSubject says that a subject does not have the expected form.
	ErrSubject = errors.New("names: unexpected subject")
)

// CheckToken reports whether s can be one token of a subject.
func CheckToken(s string) error {
	if len(s) == 0 || len(s) > TokenBytesMax {
		return fmt.Errorf("%w: %.80q", ErrToken, s)
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("%w: %q", ErrToken, s)
		}
	}
	return nil
}

func checkTokens(names ...string) error {
	for _, s := range names {
		if err := CheckToken(s); err != nil {
			return err
		}
	}
	return nil
}

// Names builds and reads every subject, stream and bucket name of one
// installation. The zero value has the default prefix.
type Names struct{ prefix, owner string }

// NewNames makes names with a prefix; an empty one is DefaultPrefix.
func NewNames(prefix string) (Names, error) {
	if prefix == "" {
		return Names{}, nil
	}
	return Names{prefix: prefix}, CheckToken(prefix)
}

// As returns names whose commands are those of an owner: the server lets a client publish only those of its own name.
func (n Names) As(owner string) (Names, error) {
	if owner == "" {
		return n, nil
	}
	n.owner = owner
	if owner == ownNode {
		return n, fmt.Errorf("owner %q: %w: the name is reserved for nodes", owner, ErrToken)
	}
	return n, CheckToken(owner)
}

// ownNode is no name of an owner: the inbox of that name is that of nodes.
const ownNode = "node"

// Owner is the owner whose commands n names; "": an operator's.
func (n Names) Owner() string { return n.owner }

// ParseOwner returns the owner that the subject of a command names; "": none, it is an operator's.
func (n Names) ParseOwner(subject string) string {
	rest, ok := strings.CutPrefix(subject, n.CommandPrefix()+"."+ownerToken+".")
	if !ok {
		return ""
	}
	owner, _, _ := strings.Cut(rest, ".")
	return owner
}

// ParseVerb returns what the subject of a command names after its owner: VERB, or VERB.host-MACHINE; "": it is no command.
func ParseVerb(n Names, subject string) string {
	rest, ok := strings.CutPrefix(subject, n.CommandPrefix()+".")
	if !ok {
		return ""
	}
	if owned, ok := strings.CutPrefix(rest, ownerToken+"."); ok {
		_, rest, _ = strings.Cut(owned, ".")
	}
	return rest
}

// Prefix is the first token of all subjects.
func (n Names) Prefix() string {
	if n.prefix == "" {
		return DefaultPrefix
	}
	return n.prefix
}

// BoxSubject is the log subject of an address.
func (n Names) BoxSubject(pool string, shard int, at mailbox.Address) (string, error) {
	at = at.Bare()
	run, agent, _ := strings.Cut(string(at), ".")
	if err := checkTokens(pool, run, agent); err != nil {
		return "", fmt.Errorf("box of %q: %w", at, err)
	}
	return n.Prefix() + "." + boxToken + "." + pool + "." + strconv.Itoa(shard) + "." + string(at), nil
}

// ShardSubjects matches all logs of one shard. The pool must be a token.
func (n Names) ShardSubjects(pool string, shard int) string {
	return n.Prefix() + "." + boxToken + "." + pool + "." + strconv.Itoa(shard) + ".*.*"
}

// RunSubjects matches all logs of one run, whatever their pool and shard.
func (n Names) RunSubjects(run string) (string, error) {
	if err := CheckToken(run); err != nil {
		return "", fmt.Errorf("boxes of run %q: %w", run, err)
	}
	return n.Prefix() + "." + boxToken + ".*.*." + run + ".*", nil
}

// AllBoxes matches every log.
func (n Names) AllBoxes() string { return n.Prefix() + "." + boxToken + ".>" }

// BoxStream is the name of the n-th stream of a pool.
func (n Names) BoxStream(pool string, stream int) string {
	return strings.ToUpper(n.Prefix()+"_"+boxToken+"_"+pool) + "_" + strconv.Itoa(stream)
}

// ParseBoxStream reads the name of a box stream.
func (n Names) ParseBoxStream(name string) (pool string, stream int, ok bool) {
	rest, ours := strings.CutPrefix(name, strings.ToUpper(n.Prefix()+"_"+boxToken+"_"))
	under := strings.LastIndexByte(rest, '_')
	if !ours || under < 0 {
		return "", 0, false
	}
	pool = strings.ToLower(rest[:under])
	stream, err := strconv.Atoi(rest[under+1:])
	return pool, stream, err == nil && n.BoxStream(pool, stream) == name && CheckToken(pool) == nil
}

// ParseBox reads a log subject. The address is without the pool.
func (n Names) ParseBox(subject string) (pool string, shard int, at mailbox.Address, err error) {
	rest, ok := strings.CutPrefix(subject, n.Prefix()+"."+boxToken+".")
	if !ok || strings.Count(rest, ".") != boxSubjectTokens-3 {
		return "", 0, "", fmt.Errorf("%w: %q is no log", ErrSubject, subject)
	}
	pool, rest, _ = strings.Cut(rest, ".")
	number, address, _ := strings.Cut(rest, ".")
	shard, err = strconv.Atoi(number)
	if err != nil || shard < 0 {
		return "", 0, "", fmt.Errorf("%w: %q has no shard", ErrSubject, subject)
	}
	return pool, shard, mailbox.Address(address), nil
}

// EventSubject is the subject of an event. A kind is two tokens: "turn.started".
func (n Names) EventSubject(run, agent, kind string) (string, error) {
	noun, verb, _ := strings.Cut(kind, ".")
	if err := checkTokens(run, agent, noun, verb); err != nil {
		return "", fmt.Errorf("event %q of %s.%s: %w", kind, run, agent, err)
	}
	return n.Prefix() + "." + eventToken + "." + run + "." + agent + "." + kind, nil
}

// ContentSubject is the subject of an event with its texts, for clients, where the subject for observers has it without
// them. event is a subject of events: of one, of those of a run, or of all.
func (n Names) ContentSubject(event string) string {
	return n.Prefix() + "." + contentToken + strings.TrimPrefix(event, n.Prefix()+"."+eventToken)
}

// RunEvents matches all events of one run.
func (n Names) RunEvents(run string) (string, error) {
	if err := CheckToken(run); err != nil {
		return "", fmt.Errorf("events of run %q: %w", run, err)
	}
	return n.Prefix() + "." + eventToken + "." + run + ".>", nil
}

// RunChanges matches the events about one run as a whole: run.finished, run.parked and so on.
func (n Names) RunChanges(run string) (string, error) {
	if err := CheckToken(run); err != nil {
		return "", fmt.Errorf("changes of run %q: %w", run, err)
	}
	return n.Prefix() + "." + eventToken + "." + run + ".*.run.*", nil
}

// AllEvents matches every event.
func (n Names) AllEvents() string { return n.Prefix() + "." + eventToken + ".>" }

// CommandSubject is the subject of a verb of the control service.
func (n Names) CommandSubject(verb string) (string, error) {
	if err := CheckToken(verb); err != nil {
		return "", fmt.Errorf("verb %q: %w", verb, err)
	}
	if n.owner != "" {
		return n.CommandPrefix() + "." + ownerToken + "." + n.owner + "." + verb, nil
	}
	return n.CommandPrefix() + "." + verb, nil
}

// OwnersSubject matches a command of all owners: of a verb, or of a verb for a machine.
func (n Names) OwnersSubject(command string) string {
	return n.CommandPrefix() + "." + ownerToken + ".*" + strings.TrimPrefix(command, n.CommandPrefix())
}

// OwnedCommands matches the commands of all owners.
func OwnedCommands(n Names) string { return n.CommandPrefix() + "." + ownerToken + ".>" }

// CommandPrefix is the common prefix of the endpoints of the control service.
func (n Names) CommandPrefix() string { return n.Prefix() + "." + commandToken }

// AllCommands matches every verb.
func (n Names) AllCommands() string { return n.Prefix() + "." + commandToken + ".>" }

// TriggerPrefix is what the subjects begin with on which messages begin runs.
func (n Names) TriggerPrefix() string { return n.Prefix() + "." + triggerToken + "." }

// AllTriggers matches the subjects of all triggers.
func (n Names) AllTriggers() string { return n.TriggerPrefix() + ">" }

// TriggerSubject is the subject of a trigger. Its name is one to four tokens: "deploys" or "github.push".
func (n Names) TriggerSubject(name string) (string, error) {
	tokens := strings.Split(name, ".")
	if err := checkTokens(tokens...); err != nil || len(tokens) > triggerTokensMax {
		return "", fmt.Errorf("trigger %.80q: %w", name, ErrToken)
	}
	return n.TriggerPrefix() + name, nil
}

// TriggerStream is the name of the stream in which the messages of triggers wait until a node has taken them.
func (n Names) TriggerStream() string { return strings.ToUpper(n.Prefix() + "_triggers") }

// AnswerSubject is where a client leaves an answer for a run while no node is up.
func (n Names) AnswerSubject(run string) (string, error) {
	if err := CheckToken(run); err != nil {
		return "", fmt.Errorf("answers to run %q: %w", run, err)
	}
	return n.Prefix() + "." + answerToken + "." + run, nil
}

// AllAnswers matches every answer that clients leave.
func (n Names) AllAnswers() string { return n.Prefix() + "." + answerToken + ".*" }

// StoredAnswers is where the server says that it has stored an answer to a run; "*": to any.
func (n Names) StoredAnswers(run string) string { return n.Prefix() + "." + storedToken + "." + run }

// AnswerStream is the name of the stream of answers.
func (n Names) AnswerStream() string { return strings.ToUpper(n.Prefix() + "_" + answerToken) }

// ParseAnswer returns the run of an answer.
func (n Names) ParseAnswer(subject string) (run string, err error) {
	run, ok := strings.CutPrefix(subject, n.Prefix()+"."+answerToken+".")
	if !ok || CheckToken(run) != nil {
		return "", fmt.Errorf("%w: %q is no answer", ErrSubject, subject)
	}
	return run, nil
}

// The verbs of the Synadia Agent Protocol.
const (
	AgentPrompt    = "prompt"
	AgentStatus    = "status"
	AgentHeartbeat = "hb"
)

// AgentCaller begins the caller of each run that a prompt of that protocol has started.
const AgentCaller = "agent protocol"

// AgentSubject is a subject of the Synadia Agent Protocol for one exported agent.
func (n Names) AgentSubject(verb, owner, name string) (string, error) {
	if err := checkTokens(verb, owner, name); err != nil {
		return "", fmt.Errorf("agent %q of %q: %w", name, owner, err)
	}
	return "agents." + verb + "." + n.Prefix() + "." + owner + "." + name, nil
}

// ShardBucket, NodeBucket and RunBucket are key-value buckets: shard leases,
// live nodes, and the index of runs.
func (n Names) ShardBucket() string { return n.Prefix() + "_shards" }

// NodeBucket: see ShardBucket.
func (n Names) NodeBucket() string { return n.Prefix() + "_nodes" }

// ThrottleBucket holds the notices that model providers gave to nodes.
func (n Names) ThrottleBucket() string { return n.Prefix() + "_gates" }

// RunBucket: see ShardBucket.
func (n Names) RunBucket() string { return n.Prefix() + "_runs" }

// BlobStore is the object store for payloads too large for an entry.
func (n Names) BlobStore() string { return n.Prefix() + "_blobs" }

// BlobStream is the stream behind BlobStore, as the client library names it.
func (n Names) BlobStream() string { return "OBJ_" + n.BlobStore() }

// BlobMeta is the subject of the metadata of one object in BlobStore, as the client library
// names it: the metadata remains after the object is deleted.
func (n Names) BlobMeta(name string) string {
	return "$O." + n.BlobStore() + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// BlobChunks is the subject of the chunks of one object of BlobStore, as the
// client library forms it; id may be of several tokens.
func (n Names) BlobChunks(id string) string { return "$O." + n.BlobStore() + ".C." + id }

// KVSubject is the subject behind a key of a bucket. A lease is renewed by
// publishing to it with the expected last sequence and Nats-TTL: the Update of
// the client library drops the TTL.
func KVSubject(bucket, key string) (string, error) {
	for part := range strings.SplitSeq(key, ".") {
		if err := CheckToken(part); err != nil {
			return "", fmt.Errorf("key %q of %s: %w", key, bucket, err)
		}
	}
	return "$KV." + bucket + "." + key, nil
}

// foreignForm is the form of the name of an agent of another program: three tokens of its subject. The protocol
// recommends lower-case letters, but agents exist that have others.
var foreignForm = lazyregexp.New(`^[A-Za-z0-9_-]{1,63}/[A-Za-z0-9_-]{1,63}/[A-Za-z0-9_-]{1,63}$`)

// errForeignAgent says that a name is not that of an agent of another program.
var errForeignAgent = errors.New("names: not HARNESS/OWNER/NAME with letters, digits, _ and -, such as cc/derek/reviewer")

// ForeignPrompt is the subject at which an agent of another program, HARNESS/OWNER/NAME, takes prompts unless it has
// registered another.
func ForeignPrompt(name string) (string, error) {
	if !foreignForm.MatchString(name) {
		return "", fmt.Errorf("%.80q: %w", name, errForeignAgent)
	}
	return "agents." + AgentPrompt + "." + strings.ReplaceAll(name, "/", "."), nil
}
