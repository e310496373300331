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
	// AnswerBytesMax is the most bytes of one answer that waits for a node.
	AnswerBytesMax = 64 << 10
	// AnswersPerRunMax is how many answers to one run may wait for a node.
	AnswersPerRunMax = 64
	// AnswerAgeMax is how long an answer waits for a node.
	AnswerAgeMax = 7 * 24 * time.Hour

	answersBytesMax = 16 << 20
	answerReaders   = "nodes"
	// answerAckWait is how long a node may work on an answer before another node is given it: more than one request takes.
	answerAckWait  = 30 * time.Second
	answersPending = 64
)

// The server sends no acknowledgement for what is stored here: the message names the subject of its acknowledgement,
// so a client could have the server write into a log, a lease or the index. It republishes the headers of what it has
// stored instead, on a subject to which only it can publish.
func answerStream(n names.Names, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:                 n.AnswerStream(),
		Description:          "answers of people that wait for a node; clients write, nodes read and so remove",
		Subjects:             []string{n.AllAnswers()},
		Storage:              jetstream.FileStorage,
		Retention:            jetstream.WorkQueuePolicy,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		MaxMsgsPerSubject:    AnswersPerRunMax,
		MaxMsgSize:           AnswerBytesMax,
		MaxBytes:             answersBytesMax,
		MaxAge:               AnswerAgeMax,
		NoAck:                true,
		RePublish:            &jetstream.RePublish{Source: n.AllAnswers(), Destination: n.StoredAnswers("{{wildcard(1)}}"), HeadersOnly: true},
		Replicas:             replicas,
	}
}

// openAnswers opens the stream of answers that wait for a node, and makes it if it is missing.
func openAnswers(ctx context.Context, js jetstream.JetStream, n names.Names, replicas int) (jetstream.Stream, error) {
	want := answerStream(n, replicas)
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node was faster
			s, err = js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bus: stream %s: %w", want.Name, err)
	}
	if have := s.CachedInfo().Config; !have.NoAck || have.Retention != want.Retention {
		return nil, fmt.Errorf("%w: %s acknowledges what clients send, or keeps what nodes have read; delete it, and make it with troupe-node --setup", ErrAnswerStream, want.Name)
	}
	return s, nil
}

// ConnectAnswers opens the stream of answers that wait for a node, and makes it if it is missing.
func ConnectAnswers(ctx context.Context, nc *nats.Conn, n names.Names, replicas int) (jetstream.Stream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("bus: %w", err)
	}
	return openAnswers(ctx, js, n, replicas)
}

// ErrAnswerStream says that the stream of answers has other settings than troupe makes.
var ErrAnswerStream = errors.New("bus: the stream of answers has unsafe settings")

// ReadAnswers returns the one consumer with which all nodes read the answers: each goes to one node, and once more if
// that node does not say that it has read it. The stream is made if it is missing.
func ReadAnswers(ctx context.Context, nc *nats.Conn, n names.Names) (jetstream.Consumer, error) {
	s, err := ConnectAnswers(ctx, nc, n, 0)
	if err != nil {
		return nil, err
	}
	c, err := s.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: answerReaders, AckPolicy: jetstream.AckExplicitPolicy, AckWait: answerAckWait, MaxAckPending: answersPending})
	if err != nil {
		return nil, fmt.Errorf("bus: read the answers: %w", err)
	}
	return c, nil
}
