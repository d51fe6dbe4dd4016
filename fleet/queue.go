package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gcsup/internal/crowd"
)

// Limits of [QueueOptions].AckWait. A lease lasts at least 2 s, and ends a second before
// a message is delivered again.
const (
	DefaultAckWait = time.Minute
	MinAckWait     = 3 * time.Second
	MaxAckWait     = time.Hour
)

// QueueOptions configure a Queue. The zero value uses the defaults.
type QueueOptions struct {
	// Fleet names the queue, so that fleets can share a server. "" is "default".
	Fleet string

	// AckWait is how long a worker may be silent before another one gets its uploads. 0
	// is that of the queue, or one minute. It can be changed while there are no workers.
	AckWait time.Duration

	// MustExist means that the queue is not created.
	MustExist bool

	// Replicas is how many servers of a cluster keep the queue, if it is created. 0 is 1.
	Replicas int
}

var fleetName = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// Errors of OpenQueue.
var (
	// ErrNoQueue means that there is no queue of that name.
	ErrNoQueue = errors.New("there is no such fleet, because nothing was submitted and no worker runs")

	// ErrOptions means that options are invalid, here or for NewWorker.
	ErrOptions = errors.New("invalid option")

	// ErrQueueLost means that the queue is another one than when Queue.Tasks was called first.
	ErrQueueLost = errors.New("the queue was lost: submit the tree again")

	// ErrAckWait means that the queue has another ack wait, and workers that rely on it.
	ErrAckWait = errors.New("the ack wait cannot be changed while there are workers")
)

// Queue is the queue of a fleet in NATS JetStream: a stream of tasks, of which each
// subject has at most one, and key-value buckets with their outcomes. It is safe for
// concurrent use.
type Queue struct {
	js   jetstream.JetStream
	opts QueueOptions

	open  atomic.Pointer[parts]
	since atomic.Pointer[time.Time] // when the stream that Tasks found first was created
}

// parts are what JetStream has of a queue.
type parts struct {
	stream   jetstream.Stream
	consumer jetstream.Consumer // of all workers
	ackWait  time.Duration
	records  jetstream.KeyValue // by task
	failed   jetstream.KeyValue // dead letters, by task of one file
	workers  jetstream.KeyValue // live workers
	control  jetstream.KeyValue // settings of the fleet
}

// OpenQueue opens the queue of a fleet, and creates what is missing of it.
func OpenQueue(ctx context.Context, nc *nats.Conn, opts QueueOptions) (*Queue, error) {
	if opts.Fleet == "" {
		opts.Fleet = "default"
	}
	switch {
	case !fleetName.MatchString(opts.Fleet):
		return nil, fmt.Errorf("%w: fleet name %q: want 1 to 32 of a-z, 0-9, - and _", ErrOptions, opts.Fleet)
	case opts.AckWait != 0 && (opts.AckWait < MinAckWait || opts.AckWait > MaxAckWait):
		return nil, fmt.Errorf("%w: ack wait %v: want %v to %v", ErrOptions, opts.AckWait, MinAckWait, MaxAckWait)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	q := &Queue{js: js, opts: opts}
	if err := q.ensure(ctx); err != nil {
		return nil, err
	}
	return q, nil
}

// AckWait returns how long a worker may be silent before another one gets its uploads.
func (q *Queue) AckWait() time.Duration { return q.open.Load().ackWait }

// stream returns the name of the stream of tasks.
func (q *Queue) stream() string { return "gcsup-" + q.opts.Fleet }

// subject returns the subject of a task.
func (q *Queue) subject(id string) string { return "gcsup." + q.opts.Fleet + ".task." + id }

// idOf returns the ID of the task of a subject.
func idOf(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// bucket returns the name of a key-value bucket.
func (q *Queue) bucket(of string) string { return "gcsup-" + q.opts.Fleet + "-" + of }

// workerTTL is how long a worker that is not heard of counts as live.
const workerTTL = 2 * crowd.MaxInterval

// ensure opens the stream, its consumer and the buckets, and creates those that are
// missing: the first time, and after JetStream was wiped.
func (q *Queue) ensure(ctx context.Context) error {
	if q.open.Load() != nil {
		pause(ctx, recreateDelay)
	}
	stream, err := q.js.Stream(ctx, q.stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if q.opts.MustExist {
			return fmt.Errorf("fleet %s: %w", q.opts.Fleet, ErrNoQueue)
		}
		stream, err = q.js.CreateStream(ctx, q.streamConfig())
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", q.stream(), err)
	}
	consumer, err := q.openConsumer(ctx, stream)
	if err != nil {
		return fmt.Errorf("consumer of stream %s: %w", q.stream(), err)
	}
	p := &parts{stream: stream, consumer: consumer, ackWait: consumer.CachedInfo().Config.AckWait}
	for _, b := range []struct {
		of string
		kv *jetstream.KeyValue
	}{{"records", &p.records}, {"failed", &p.failed}, {"workers", &p.workers}, {"control", &p.control}} {
		*b.kv, err = q.js.KeyValue(ctx, q.bucket(b.of))
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			*b.kv, err = q.js.CreateKeyValue(ctx, q.bucketConfig(b.of))
		}
		if err != nil {
			return fmt.Errorf("bucket %s: %w", q.bucket(b.of), err)
		}
	}
	if err := q.setAckWait(ctx, p); err != nil {
		return err
	}
	q.open.Store(p)
	return nil
}

// recreateDelay is the time before a stream is created again: a server forgets the name of
// one that is deleted before it removes its directory, and would remove that of the new
// one, too.
const recreateDelay = time.Second

// setAckWait changes the ack wait to that of the options. The leases of workers depend on
// it, so that there must be none.
func (q *Queue) setAckWait(ctx context.Context, p *parts) error {
	if q.opts.AckWait == 0 || q.opts.AckWait == p.ackWait {
		return nil
	}
	others := crowd.Crowd{}
	if err := conditions(ctx, p.workers, others); err != nil {
		return err
	}
	if len(others) > 0 {
		return fmt.Errorf("%w: that of the fleet %s is %v, not %v", ErrAckWait, q.opts.Fleet, p.ackWait, q.opts.AckWait)
	}
	consumer, err := p.stream.UpdateConsumer(ctx, q.consumerConfig(p.consumer.CachedInfo().Name))
	if err != nil {
		return fmt.Errorf("consumer of stream %s: %w", q.stream(), err)
	}
	p.consumer, p.ackWait = consumer, q.opts.AckWait
	return nil
}

// consumerPrefix begins the name of the consumer.
const consumerPrefix = "workers-"

// openConsumer opens the consumer of the stream, and creates it if there is none. Its
// name is another one each time: the subject of an acknowledgment has the name and a
// sequence number, and one for a task from before JetStream was wiped would otherwise
// remove whichever task has that number then.
func (q *Queue) openConsumer(ctx context.Context, stream jetstream.Stream) (jetstream.Consumer, error) {
	for {
		names, found := stream.ConsumerNames(ctx), ""
		for name := range names.Name() {
			if strings.HasPrefix(name, consumerPrefix) {
				found = name
			}
		}
		if err := names.Err(); err != nil {
			return nil, err
		}
		if found != "" {
			return stream.Consumer(ctx, found)
		}
		consumer, err := stream.CreateConsumer(ctx, q.consumerConfig(consumerPrefix+rand.Text()[:8]))
		if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == errCodeOneConsumer && ctx.Err() == nil {
			continue // another process created it
		}
		return consumer, err
	}
}

// errCodeOneConsumer means that the stream, a work queue, has its one consumer.
const errCodeOneConsumer = 10099

func (q *Queue) streamConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        q.stream(),
		Description: "uploads that are waiting, or that a worker has",
		Subjects:    []string{q.subject("*")},
		Retention:   jetstream.WorkQueuePolicy,
		Storage:     jetstream.FileStorage,
		Replicas:    max(q.opts.Replicas, 1),
		MaxMsgSize:  maxMessage,

		// A task that is in the queue is not added again.
		MaxMsgsPerSubject:    1,
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
	}
}

func (q *Queue) consumerConfig(name string) jetstream.ConsumerConfig {
	ackWait := q.opts.AckWait
	if ackWait == 0 {
		ackWait = DefaultAckWait
	}
	return jetstream.ConsumerConfig{
		Durable:   name,
		AckPolicy: jetstream.AckExplicitPolicy,
		AckWait:   ackWait,
		// Deliveries that end with a machine must not count. Workers count failures.
		MaxDeliver:    -1,
		MaxAckPending: -1,   // as many as the workers take
		MaxWaiting:    8192, // workers
	}
}

func (q *Queue) bucketConfig(of string) jetstream.KeyValueConfig {
	c := jetstream.KeyValueConfig{Bucket: q.bucket(of), Replicas: max(q.opts.Replicas, 1)}
	if of == "workers" {
		c.TTL, c.Storage = workerTTL, jetstream.MemoryStorage
	}
	return c
}

// errQueued means that the task is in the queue already.
var errQueued = errors.New("the task is in the queue")

// publish adds a task to the queue. If it is there already, the error is errQueued.
func (q *Queue) publish(ctx context.Context, t *Task) error {
	data, err := t.encode()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		_, err = q.js.Publish(ctx, q.subject(t.ID()), data)
		api, ok := errors.AsType[*jetstream.APIError](err)
		switch {
		case ok && strings.Contains(api.Description, "maximum messages per subject"):
			if try > 1 {
				return nil // the reply to an earlier try was lost
			}
			return errQueued
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && try < publishTries:
			continue
		}
		return err
	}
}

// publishTries is how often a task is published that is not acknowledged within 5 s, the
// timeout of a request: the election of a leader takes longer at times.
const publishTries = 3

// next waits for a task. The message is nil if none came within a time.
func (q *Queue) next(ctx context.Context, wait time.Duration) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	msg, err := q.open.Load().consumer.Next(jetstream.FetchContext(ctx))
	switch {
	case err == nil:
		return msg, nil
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, jetstream.ErrNoMessages), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return nil, nil
	}
	return nil, err
}

// gone reports whether an error means that JetStream was wiped.
func gone(err error) bool {
	for _, e := range []error{
		jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerDoesNotExist,
		jetstream.ErrNoStreamResponse, jetstream.ErrBucketNotFound, nats.ErrNoResponders,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// slow reports whether an error means that a server did not answer in time, as while a
// cluster elects a leader.
func slow(err error) bool {
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders)
}

const (
	patience  = 30 * time.Second       // with servers that do not answer
	retryWait = 200 * time.Millisecond // between two tries
)

// restored calls f until it succeeds, while servers do not answer in time. If JetStream was
// wiped, it is set up again. f must be a change that can be repeated.
func (q *Queue) restored(ctx context.Context, f func() error) error {
	began := time.Now()
	for {
		err := f()
		if err == nil || ctx.Err() != nil || !gone(err) && !slow(err) || time.Since(began) > patience {
			return err
		}
		if gone(err) {
			if ensureErr := q.ensure(ctx); ensureErr != nil && !slow(ensureErr) {
				return errors.Join(err, ensureErr)
			}
		}
		pause(ctx, retryWait)
	}
}
