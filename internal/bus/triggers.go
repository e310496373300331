package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/troupe-run/troupe/internal/bus/names"
)

const (
	// TriggerBytesMax is the largest message of a trigger.
	TriggerBytesMax = 32 << 10
	// TriggerQueueMax is how many messages may wait on one subject. The server refuses further ones.
	TriggerQueueMax = 1000
	// triggerStreamBytesMax is the most bytes of all messages that wait.
	triggerStreamBytesMax = 16 << 20
	// triggerAckWait is how long a node may take with a message before another node gets it.
	triggerAckWait = 30 * time.Second
	// triggerTimeout bounds one request about the stream: a server without the right to it does not answer.
	triggerTimeout = 5 * time.Second
)

var (
	// errNoTriggers says that the stream of the triggers is missing and cannot be made.
	errNoTriggers = errors.New("bus: the stream of the triggers is missing on this server, or acknowledges messages")
	// errTriggersAcknowledge says that the stream has the setting with which a client writes where it may not.
	errTriggersAcknowledge = errors.New("bus: the stream of the triggers acknowledges messages; troupe-node --setup changes that")
)

// MakeTriggers makes the stream in which the messages of triggers wait, if it is missing. A message stays until every
// schedule of its subject has taken it, and is not stored if there is none. The stream acknowledges nothing: a
// message names the subject of its acknowledgement, and the server publishes there without the rights of the client,
// also in a log. A stream that acknowledges is changed.
func MakeTriggers(ctx context.Context, nc *nats.Conn, n names.Names, replicas int) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("bus: triggers: %w", err)
	}
	s, err := js.Stream(ctx, n.TriggerStream())
	if err == nil && !s.CachedInfo().Config.NoAck {
		quiet := s.CachedInfo().Config
		quiet.NoAck = true
		if _, err = js.UpdateStream(ctx, quiet); err != nil {
			err = fmt.Errorf("%w: %w", errTriggersAcknowledge, err)
		}
	}
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: n.TriggerStream(), Description: "messages that begin runs of troupe", Subjects: []string{n.AllTriggers()}, Replicas: replicas,
		Retention: jetstream.InterestPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
		MaxMsgsPerSubject: TriggerQueueMax, MaxMsgSize: TriggerBytesMax, MaxBytes: triggerStreamBytesMax, NoAck: true,
		// The server would drop a message whose Nats-Msg-Id came on another subject before.
		Duplicates: 100 * time.Millisecond,
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node was faster
		return nil
	}
	return err
}

// Triggers gives the messages of triggers to schedules. Each schedule has a consumer of the stream.
type Triggers struct {
	nc *nats.Conn
	js jetstream.JetStream
	n  names.Names
	// isQuiet: the stream is there, and acknowledges nothing.
	isQuiet atomic.Bool
}

// NewTriggers gives messages over a connection of a node.
func NewTriggers(nc *nats.Conn, n names.Names) (*Triggers, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("bus: triggers: %w", err)
	}
	return &Triggers{nc: nc, js: js, n: n}, nil
}

// Prepare makes the stream if it is missing, and has it acknowledge nothing.
func (t *Triggers) Prepare(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, triggerTimeout)
	defer cancel()
	err := MakeTriggers(within, t.nc, t.n, 1)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return errNoTriggers
	}
	t.isQuiet.Store(err == nil)
	return err
}

// Open has the messages of a subject kept for a schedule from now on. It is harmless to repeat. A consumer of another
// subject is that of a deleted schedule with the same id, whose messages nobody takes any more: Open replaces it.
func (t *Triggers) Open(ctx context.Context, schedule, trigger string) error {
	subject, err := t.n.TriggerSubject(trigger)
	if err != nil {
		return err
	}
	err = t.createConsumer(ctx, schedule, subject)
	if errors.Is(err, jetstream.ErrConsumerExists) { // with another configuration, perhaps of another release
		err = t.replaceConsumer(ctx, schedule, subject)
	}
	if err != nil {
		return fmt.Errorf("bus: trigger %s: %w", trigger, err)
	}
	return nil
}

func (t *Triggers) createConsumer(ctx context.Context, schedule, subject string) error {
	_, err := t.js.CreateConsumer(ctx, t.n.TriggerStream(), jetstream.ConsumerConfig{Durable: schedule, FilterSubject: subject,
		AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverNewPolicy, AckWait: triggerAckWait, MaxAckPending: 1})
	return err
}

// replaceConsumer replaces the consumer of a schedule unless it has the subject. An update is not enough: the consumer
// would keep its place in the stream, and the message of the other subject that it has delivered.
func (t *Triggers) replaceConsumer(ctx context.Context, schedule, subject string) error {
	c, err := t.js.Consumer(ctx, t.n.TriggerStream(), schedule)
	if err == nil && c.CachedInfo().Config.FilterSubject == subject {
		return nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	if err := t.Close(ctx, schedule); err != nil {
		return err
	}
	return t.createConsumer(ctx, schedule, subject)
}

// Close has no more messages kept for a schedule.
func (t *Triggers) Close(ctx context.Context, schedule string) error {
	err := t.js.DeleteConsumer(ctx, t.n.TriggerStream(), schedule)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// TriggerMessage is a message of a trigger. Until Done, the server gives it to a node again.
type TriggerMessage struct {
	// ID is its Nats-Msg-Id, or its place in the stream.
	ID   string
	At   time.Time // when the server stored it
	Data []byte
	msg  jetstream.Msg
}

// Done removes the message.
func (m *TriggerMessage) Done(ctx context.Context) error { return m.msg.DoubleAck(ctx) }

// Later has the message come again.
func (m *TriggerMessage) Later(after time.Duration) error { return m.msg.NakWithDelay(after) }

// Next waits for the next message of a schedule, for a while; nil: none came. If the schedule had no consumer of its
// subject, Next opens one and does not wait: the schedule may have been deleted since the caller read its log, and only
// a caller that reads the log again closes the consumer.
func (t *Triggers) Next(ctx context.Context, schedule, trigger string, wait time.Duration) (*TriggerMessage, error) {
	if !t.isQuiet.Load() {
		if err := t.Prepare(ctx); err != nil {
			return nil, err
		}
	}
	c, err := t.findConsumer(ctx, schedule, trigger)
	if err != nil {
		return nil, fmt.Errorf("bus: trigger %s: %w", trigger, err)
	}
	if c == nil {
		return nil, t.Open(ctx, schedule, trigger)
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	batch, err := c.Fetch(1, jetstream.FetchContext(within))
	if err != nil {
		return nil, fmt.Errorf("bus: trigger %s: %w", trigger, err)
	}
	if msg, ok := <-batch.Messages(); ok {
		meta, err := msg.Metadata()
		if err != nil {
			return nil, fmt.Errorf("bus: trigger %s: %w", trigger, err)
		}
		m := &TriggerMessage{ID: fmt.Sprintf("#%d", meta.Sequence.Stream), At: meta.Timestamp, Data: msg.Data(), msg: msg}
		if id := msg.Headers().Get(jetstream.MsgIDHeader); id != "" {
			m.ID = "=" + id
		}
		return m, nil
	}
	if err := batch.Error(); err != nil && within.Err() == nil && !errors.Is(err, jetstream.ErrConsumerDeleted) {
		return nil, fmt.Errorf("bus: trigger %s: %w", trigger, err)
	}
	return nil, nil
}

// findConsumer returns the consumer of a schedule; nil if it is missing or has another subject: a node that had not read
// that the schedule was deleted and made again may have opened it.
func (t *Triggers) findConsumer(ctx context.Context, schedule, trigger string) (jetstream.Consumer, error) {
	subject, err := t.n.TriggerSubject(trigger)
	if err != nil {
		return nil, err
	}
	c, err := t.js.Consumer(ctx, t.n.TriggerStream(), schedule)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || err == nil && c.CachedInfo().Config.FilterSubject != subject {
		return nil, nil
	}
	return c, err
}
