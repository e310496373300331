package bus

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrAck says that an acknowledgement does not match what was published. The outcome of the
// publish is unknown.
var ErrAck = errors.New("bus: acknowledgement of another message")

// CheckAck compares an acknowledgement with the publish: the stream, and the sequence after which it was made. Troupe
// publishes messages without an id for the broker, so the broker detects no duplicates.
func CheckAck(ack *jetstream.PubAck, stream string, after uint64) error {
	if ack == nil || ack.Stream != stream || ack.Sequence <= after || ack.Duplicate {
		return fmt.Errorf("%w: %+v, want stream %s and a sequence above %d", ErrAck, ack, stream, after)
	}
	return nil
}

// AgentHeader is the header of a request that the program of an agent has sent. The front of
// an embedded server sets it.
const AgentHeader = "Troupe-Agent-Program"

// AgentRefused is why a node refuses a decision that the program of an agent has sent.
const AgentRefused = "an agent cannot answer questions or change what agents may do: a tool, a hook or an MCP server of a run has sent this"

// ReplyBytesMax is the longest reply subject that a node answers.
const ReplyBytesMax = 512

// The reply subjects that a node answers: the inboxes of observers, of clients
// (those of one user may have a prefix of their own below clientInboxes), and
// those that a server makes for a request from another account.
var (
	answerablePrefixes = []string{"_INBOX.", "_INBOX_client.", ServerInbox}
	clientInboxes      = "_INBOX_client_"
)

// NodeClientInbox is where a node that shares a server receives the answers of other nodes:
// nodes do not answer to its own inboxes.
const NodeClientInbox = "_INBOX_client_node"

// OwnerInbox is where a client of an owner receives its answers: the server lets only that client subscribe there.
func OwnerInbox(owner string) string { return clientInboxes + owner }

// CanAnswer reports whether a node may send an answer to a reply subject. The request names
// that subject, so all subjects but the inboxes of clients and observers are refused: an
// answer in a log would be an entry, and an answer in an inbox of a node an acknowledgement.
func CanAnswer(subject string) bool {
	if len(subject) > ReplyBytesMax || strings.ContainsAny(subject, "*> \t\r\n\f\x00") {
		return false
	}
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" {
			return false
		}
	}
	for _, prefix := range answerablePrefixes {
		if strings.HasPrefix(subject, prefix) {
			return true
		}
	}
	first, rest, _ := strings.Cut(subject, ".")
	return strings.HasPrefix(first, clientInboxes) && rest != ""
}

// ServerInbox is the prefix of the reply subjects that a server makes for a request from
// another account.
const ServerInbox = "_R_."

// PrivateInbox gives one connection inboxes whose names cannot be guessed: the prefix, and
// 128 random bits. The ids of the client library alone increase in fixed steps from one that
// any service of the process reveals to any client.
func PrivateInbox(prefix string) nats.Option {
	return func(o *nats.Options) error {
		if prefix == "" {
			prefix = o.InboxPrefix // set by a context
		}
		if prefix == "" {
			prefix = strings.TrimSuffix(nats.InboxPrefix, ".")
		}
		return nats.CustomInboxPrefix(prefix + "." + rand.Text())(o)
	}
}
