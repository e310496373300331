package bus

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrAck: an acknowledgement does not fit what was published. Nothing is known of it.
var ErrAck = errors.New("bus: acknowledgement of another message")

// CheckAck compares an acknowledgement with what was published: to which stream, and
// after which sequence. No message of ours has an id for the broker, so none is a
// duplicate.
func CheckAck(ack *jetstream.PubAck, stream string, after uint64) error {
	if ack == nil || ack.Stream != stream || ack.Sequence <= after || ack.Duplicate {
		return fmt.Errorf("%w: %+v, want stream %s and a sequence above %d", ErrAck, ack, stream, after)
	}
	return nil
}

// ReplyBytesMax is the longest reply subject that is answered.
const ReplyBytesMax = 512

// The reply subjects that a node answers: the inboxes of observers, of clients
// (those of one user may have a prefix of their own below clientInboxes), and
// those that a server makes for a request from another account.
var (
	answered      = []string{"_INBOX.", "_INBOX_client.", serverInbox}
	clientInboxes = "_INBOX_client_"
)

// NodeClientInbox is where a node that shares a server gets the answers of nodes: its
// own inboxes get none.
const NodeClientInbox = "_INBOX_client_node"

// Answerable reports whether a node may send an answer to a reply subject. A request
// names that subject, so all but the inboxes of clients and observers are refused:
// an answer in a log would be an entry, in an inbox of a node an acknowledgement.
func Answerable(subject string) bool {
	if len(subject) > ReplyBytesMax || strings.ContainsAny(subject, "*> \t\r\n\f\x00") {
		return false
	}
	for token := range strings.SplitSeq(subject, ".") {
		if token == "" {
			return false
		}
	}
	for _, prefix := range answered {
		if strings.HasPrefix(subject, prefix) {
			return true
		}
	}
	first, rest, _ := strings.Cut(subject, ".")
	return strings.HasPrefix(first, clientInboxes) && rest != ""
}

// privateInbox gives one connection inboxes that nobody can guess: prefix, and 128
// random bits. The ids of the client library alone count in fixed steps from one
// that any service of the process tells whoever asks.
func privateInbox(prefix string) nats.Option {
	return func(o *nats.Options) error {
		if prefix == "" {
			prefix = o.InboxPrefix // of a context
		}
		if prefix == "" {
			prefix = strings.TrimSuffix(nats.InboxPrefix, ".")
		}
		return nats.CustomInboxPrefix(prefix + "." + rand.Text())(o)
	}
}
