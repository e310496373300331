package bus

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// unavailableErrors lists the errors of the client library that say that no server answered.
var unavailableErrors = []error{
	context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrNoServers,
	nats.ErrDisconnected, nats.ErrStaleConnection, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
}

// IsUnavailable reports whether an error says only that no server could answer now: a stream
// whose leader died has none for some seconds, and a server that starts is not ready. The
// request may have taken effect; a retry may succeed.
func IsUnavailable(err error) bool {
	for _, g := range unavailableErrors {
		if errors.Is(err, g) {
			return true
		}
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case codeNoLeader, codeNotClustered, codeOffline, codeConsumerOffline, codeSequenceUnread:
		return true
	}
	return false
}

// codeStoreFailed is what a server answers to a write beyond the limit of a stream ("maximum bytes
// exceeded"), and to one that its disk refuses.
const codeStoreFailed = 10077

// IsFull reports whether a server did not store a write because a stream or its disk is full: the
// same write succeeds once there is room.
func IsFull(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStoreFailed
}

// The codes of the JetStream API for conditions that pass without intervention.
const (
	codeNoLeader        = 10008 // "JetStream system temporarily unavailable"
	codeNotClustered    = 10009 // "JetStream cluster can not handle request"
	codeOffline         = 10118 // the stream's servers are offline
	codeConsumerOffline = 10119
	codeSequenceUnread  = 10163 // "expected last sequence per subject temporarily unavailable"
)

// IsConflict reports whether a write was refused because the key has another
// revision than the one expected, or another write to it is under way.
func IsConflict(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, ErrRevision)
	}
	return api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == codeSequenceInProcess
}
