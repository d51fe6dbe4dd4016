package fleet

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Default and limits of [QueueOptions].AckWait. Leases last one second less, and at least 2 s.
const (
	DefaultAckWait = time.Minute
	MinAckWait     = 3 * time.Second
	MaxAckWait     = time.Hour
)

// QueueOptions configure a Queue. The zero value uses the defaults.
type QueueOptions struct {
	// Fleet names the queue, so that several fleets can share a server: 1 to 32 of a-z, 0-9, -
	// and _. "" is "default".
	Fleet string

	// AckWait is the time without a heartbeat after which other workers get the tasks of
	// a worker: 3 s to 1 h. 0 keeps the value of the queue, or means one minute if the
	// queue is created. It can be changed only while there are no workers.
	AckWait time.Duration

	// MustExist makes OpenQueue fail with ErrNoQueue if the queue does not exist, instead of
	// creating it.
	MustExist bool

	// SignKey signs the tasks and settings of this process. VerifyKeys are the keys that it accepts; if there are none,
	// it accepts messages without a signature.
	SignKey    ed25519.PrivateKey
	VerifyKeys []ed25519.PublicKey

	// Keep is how long the record of a task stays that this process finishes, from 1 s. 0 means that it stays. Without the
	// record, a later submit puts the task into the queue again, and a worker finds its objects.
	Keep time.Duration

	// Replicas is the number of servers of a cluster that store the queue. It is fixed when the queue
	// is created. 0 means that of the queue; a new one gets 3 on a cluster of three or more
	// servers, and otherwise 1.
	Replicas int
}

var fleetName = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// Sentinel errors of this package.
var (
	// ErrNoQueue means that the queue does not exist, see QueueOptions.MustExist.
	ErrNoQueue = errors.New("there is no such fleet, because nothing was submitted and no worker runs")

	// ErrOptions means that the options of OpenQueue or NewWorker are not valid.
	ErrOptions = errors.New("invalid option")

	// ErrReplicas means that the queue has another number of replicas than QueueOptions.Replicas.
	ErrReplicas = errors.New("the number of replicas is fixed when the queue is created")

	// ErrStateKey means that the key of a worker is not that with which the others seal the saved
	// uploads.
	ErrStateKey = errors.New("the key that seals the saved uploads is not that of the other workers")

	// ErrQueueLost means that the queue was created again since the first call of Queue.Tasks.
	ErrQueueLost = errors.New("the queue was lost: submit the tree again")

	// ErrAckWait means that the queue has a different ack wait, on which its workers
	// rely.
	ErrAckWait = errors.New("the ack wait cannot be changed while there are workers")
)

// Queue is the queue of a fleet in NATS JetStream. It has a stream with at most one message for
// each task, and key-value buckets for outcomes, workers and settings. It is safe for concurrent
// use.
type Queue struct {
	js   jetstream.JetStream
	opts QueueOptions

	open  atomic.Pointer[handles]   // replaced by ensure
	since atomic.Pointer[time.Time] // creation time of the stream at the first call of Tasks
}

// handles has the stream, the consumer and the buckets of a queue.
type handles struct {
	stream   jetstream.Stream
	consumer jetstream.Consumer // shared by all workers
	ackWait  time.Duration
	records  jetstream.KeyValue // by task
	failed   jetstream.KeyValue // dead letters, by task of one file
	workers  jetstream.KeyValue // live workers
	control  jetstream.KeyValue // settings of the fleet
}

// counts reports whether the consumer has counted all deliveries of a message. Redeliver replaces the consumer, and the
// new one starts at 1.
func (p *handles) counts(m *jetstream.MsgMetadata) bool {
	c := p.consumer.CachedInfo()
	return m.Consumer == c.Name && !m.Timestamp.Before(c.Created)
}

// OpenQueue opens the queue of a fleet, and creates its missing parts unless MustExist is set. The
// error wraps [ErrOptions], [ErrNoQueue], [ErrAckWait] or [ErrReplicas], or is one of NATS.
func OpenQueue(ctx context.Context, nc *nats.Conn, opts QueueOptions) (*Queue, error) {
	if opts.Fleet == "" {
		opts.Fleet = "default"
	}
	switch {
	case !fleetName.MatchString(opts.Fleet):
		return nil, fmt.Errorf("%w: fleet name %q: want 1 to 32 of a-z, 0-9, - and _", ErrOptions, opts.Fleet)
	case opts.Keep != 0 && opts.Keep < time.Second:
		return nil, fmt.Errorf("%w: keep records for %v: want 1s or more", ErrOptions, opts.Keep)
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

// AckWait returns the time without a heartbeat after which other workers get the
// tasks of a worker.
func (q *Queue) AckWait() time.Duration { return q.open.Load().ackWait }

// streamPrefix is the beginning of the names of the streams of tasks.
const streamPrefix = "gcsup-"

// stream returns the name of the stream of tasks.
func (q *Queue) stream() string { return streamPrefix + q.opts.Fleet }

// subject returns the subject of a task. It has the version of the format: workers have no consumer for tasks of a newer
// one.
func (q *Queue) subject(id string) string {
	return fmt.Sprintf("gcsup.%s.task%d.%s", q.opts.Fleet, taskVersion, id)
}

// idOf returns the ID of the task with a subject.
func idOf(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// bucket returns the name of a key-value bucket.
func (q *Queue) bucket(of string) string { return "gcsup-" + q.opts.Fleet + "-" + of }

// workerTTL is how long a worker counts as live after its last beat.
const workerTTL = 2 * maxBeatInterval

// ensure opens the stream, its consumer and the buckets, and creates those that are missing, because
// the queue is new or JetStream was wiped.
func (q *Queue) ensure(ctx context.Context) error {
	if q.open.Load() != nil {
		pause(ctx, recreateDelay)
	}
	stream, err := q.js.Stream(ctx, q.stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if q.opts.MustExist {
			return fmt.Errorf("fleet %s: %w", q.opts.Fleet, ErrNoQueue)
		}
		stream, err = q.createStream(ctx)
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", q.stream(), err)
	}
	replicas := stream.CachedInfo().Config.Replicas
	if q.opts.Replicas != 0 && q.opts.Replicas != replicas {
		return fmt.Errorf("%w: the fleet %s has %d, not %d", ErrReplicas, q.opts.Fleet, replicas, q.opts.Replicas)
	}
	consumer, err := q.openConsumer(ctx, stream)
	if err != nil {
		return fmt.Errorf("consumer of stream %s: %w", q.stream(), err)
	}
	p := &handles{stream: stream, consumer: consumer, ackWait: consumer.CachedInfo().Config.AckWait}
	for _, b := range []struct {
		of string
		kv *jetstream.KeyValue
	}{{"records", &p.records}, {"failed", &p.failed}, {"workers", &p.workers}, {"control", &p.control}} {
		*b.kv, err = q.js.KeyValue(ctx, q.bucket(b.of))
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			*b.kv, err = placed(ctx, func() (jetstream.KeyValue, error) { return q.js.CreateKeyValue(ctx, q.bucketConfig(b.of, replicas)) })
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

// createStream creates the stream.
func (q *Queue) createStream(ctx context.Context) (jetstream.Stream, error) {
	create := func(replicas int) (jetstream.Stream, error) {
		return placed(ctx, func() (jetstream.Stream, error) { return q.js.CreateStream(ctx, q.streamConfig(replicas)) })
	}
	switch {
	case q.opts.Replicas > 0:
		return create(q.opts.Replicas)
	case q.js.Conn().ConnectedClusterName() == "":
		return create(1)
	}
	stream, err := create(defaultReplicas)
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && (api.ErrorCode == errCodeNoPeers || api.ErrorCode == errCodeNoCluster) && ctx.Err() == nil {
		return create(1) // the cluster has fewer servers
	}
	return stream, err
}

// defaultReplicas is the number of replicas of a new queue on a cluster of three or more servers.
const defaultReplicas = 3

// errCodeNoCluster is the error code of JetStream for replicas on a server without a cluster.
const errCodeNoCluster = 10074

// placed calls create again while the cluster has too few servers for the replicas, up to ten
// times: a server that just started does not count at once.
func placed[T any](ctx context.Context, create func() (T, error)) (made T, err error) {
	for range 10 {
		made, err = create()
		if api, ok := errors.AsType[*jetstream.APIError](err); !ok || api.ErrorCode != errCodeNoPeers || ctx.Err() != nil {
			return made, err
		}
		pause(ctx, recreateDelay)
	}
	return made, err
}

// errCodeNoPeers is the error code of JetStream for a stream with more replicas than the
// cluster has servers.
const errCodeNoPeers = 10005

// recreateDelay is how long to wait before a stream is created again. A server
// removes the directory of a deleted stream with a delay, and would also remove the
// directory of a new stream with the same name.
const recreateDelay = time.Second

// setAckWait changes the ack wait to that of the options. It fails if there are workers, because
// their leases depend on it.
func (q *Queue) setAckWait(ctx context.Context, p *handles) error {
	if q.opts.AckWait == 0 || q.opts.AckWait == p.ackWait {
		return nil
	}
	workers := 0 // by the key that each writes first
	err := eachOf(ctx, p.workers, detailPrefix+"*", func(jetstream.KeyValueEntry) error {
		workers++
		return nil
	})
	if err != nil {
		return err
	}
	if workers > 0 {
		return fmt.Errorf("%w: the fleet %s has %v, not %v", ErrAckWait, q.opts.Fleet, p.ackWait, q.opts.AckWait)
	}
	consumer, err := p.stream.UpdateConsumer(ctx, q.consumerConfig(p.consumer.CachedInfo().Name))
	if err != nil {
		return fmt.Errorf("consumer of stream %s: %w", q.stream(), err)
	}
	p.consumer, p.ackWait = consumer, q.opts.AckWait
	return nil
}

// consumerPrefix is the beginning of the name of the consumer. It has the version of the tasks.
var consumerPrefix = fmt.Sprintf("workers%d-", taskVersion)

// openConsumer opens the consumer of the stream, or creates it with a random name. The subject of an
// acknowledgment has the name of the consumer and a sequence number. With a fixed name, a late
// acknowledgment from before JetStream was wiped would remove the new task with that number.
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

// errCodeOneConsumer is the error code of JetStream for a second consumer of the same subjects of a work queue.
const errCodeOneConsumer = 10100

func (q *Queue) streamConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        q.stream(),
		Description: "uploads that are waiting, or that a worker has",
		Subjects:    []string{"gcsup." + q.opts.Fleet + ".*.*"},
		Retention:   jetstream.WorkQueuePolicy,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
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
		Durable:       name,
		FilterSubject: q.subject("*"),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		// Unlimited, because deliveries that end because a machine died must not count. The
		// workers count failures.
		MaxDeliver:    -1,
		MaxAckPending: -1,   // no limit
		MaxWaiting:    8192, // limits the number of workers
	}
}

// markerTTL is how long the mark of a deleted record or dead letter stays. It counts as one until then.
const markerTTL = time.Second

func (q *Queue) bucketConfig(of string, replicas int) jetstream.KeyValueConfig {
	c := jetstream.KeyValueConfig{Bucket: q.bucket(of), Replicas: replicas}
	switch of {
	case "workers":
		c.TTL, c.Storage = workerTTL, jetstream.MemoryStorage
	case "records", "failed":
		c.LimitMarkerTTL = markerTTL // permits a TTL for each record
	}
	return c
}

// next waits up to wait for a task. If there is none, the message and the error are nil.
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

// wiped reports whether an error means that JetStream has lost the queue.
func wiped(err error) bool {
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

// unanswered reports whether an error means that no server answered in time, for example because a
// cluster elects a leader.
func unanswered(err error) bool {
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders)
}

const (
	repeatFor = 30 * time.Second       // how long repeat retries
	retryWait = 200 * time.Millisecond // between two attempts
)

// repeat calls f, and calls it again if servers do not answer in time. If JetStream
// was wiped, repeat creates the queue again. If the permissions of this client do not allow a
// request, servers do not reply, and repeat returns that error. f must be safe to call more than once.
func (q *Queue) repeat(ctx context.Context, f func() error) error {
	began, before := time.Now(), q.js.Conn().LastError()
	for {
		err := f()
		if refused := q.js.Conn().LastError(); err != nil && refused != before && errors.Is(refused, nats.ErrPermissionViolation) {
			return fmt.Errorf("NATS: %w", refused)
		}
		if err == nil || ctx.Err() != nil || !wiped(err) && !unanswered(err) || time.Since(began) > repeatFor {
			return err
		}
		if wiped(err) {
			if ensureErr := q.ensure(ctx); ensureErr != nil && !unanswered(ensureErr) {
				return errors.Join(err, ensureErr)
			}
		}
		pause(ctx, retryWait)
	}
}
