package upload

import (
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/session"
)

// Spec is the object to make; Bucket and Object are required.
type Spec = session.Spec

// Options configure an [Uploader]. The zero value uses the defaults.
type Options struct {
	// Endpoint is the scheme and host of the service. "" is
	// https://storage.googleapis.com.
	Endpoint string

	// Store keeps the uploads of files, so that another process can resume
	// them: see [session.OpenDir]. If it is nil, no other call can.
	Store session.Store

	// Policy gives the length of the wait before each retry. The zero value is
	// min(2^n s + random 0..1000 ms, 32 s).
	Policy backoff.Policy

	// RetryFor keeps an upload trying for this long without new committed
	// bytes, instead of a number of tries that grows with its size
	// ([backoff.Tries]). It ends early if the next wait would not fit.
	RetryFor time.Duration

	// Gate keeps uploads that fail at the same time from multiplying the
	// requests to a service that is down: see [backoff.Gate]. Uploaders for one
	// endpoint can share one. nil is a gate of the Uploader's own, and
	// [backoff.NoGate] switches it off.
	Gate *backoff.Gate

	// Limiter limits the object data of all uploads together, in bytes per
	// second. A burst of 64 KiB is enough. A program may change the limit while
	// uploads run. nil does not limit.
	Limiter *rate.Limiter

	// ChunkSize bounds the bytes of one request, for networks that cut long
	// ones. It is rounded up to a multiple of 256 KiB. 0 is at most 1 GiB for
	// the first request, and then what takes about a minute.
	ChunkSize int64

	// Parallel sends large files in parts over several connections: see [InParts] and
	// [AutoParts]. nil is one connection. Without it, a saved upload in parts cannot be
	// resumed, queried or canceled.
	Parallel *Parts

	// CommitEvery bounds how much is sent before the service reports how much of
	// it is durable. The zero value adds no bound: a request carries up to what
	// ChunkSize allows, and nothing in it is known to be durable before its
	// reply.
	CommitEvery CommitEvery

	// A request is cancelled and replaced by a status query if it lags behind
	// StallRate, in bytes per second, by StallTimeout. 0 is 2 minutes and
	// 64 KiB/s. A negative StallTimeout switches this off.
	StallTimeout time.Duration
	StallRate    int64

	// Window is the greatest number of bytes of a stream that one request carries,
	// and that are kept in memory until the server has committed them: a multiple
	// of 256 KiB. A stream uses two windows. 0 is 16 MiB.
	Window int

	// Memory bounds the windows of all streams together, in bytes. Each stream
	// gets an equal share, and its windows become shorter when others start. If the
	// share is at most Window, and the source is much faster than the service, a
	// stream has one window of that size instead of two. 0 is 128 MiB.
	//
	// A window can always have 1 MiB, so that no stream waits for another. The
	// streams therefore use at most Memory, or 2 MiB each if that is more. The parts of
	// multipart uploads, see [ByMultipart], use what streams leave. Windows
	// that were filled while there were fewer streams are kept until the server has
	// committed them: streams that the service does not answer can keep all of
	// Memory, and each further stream then uses up to 2 MiB beyond it.
	Memory int64

	// RestartChanged starts over from byte 0 if a file is not the one with
	// which its saved session began, instead of failing with
	// [session.ErrSourceChanged]. A file that changes during the call fails.
	RestartChanged bool

	// Restart makes a call of File discard a saved upload of the same file to
	// the same destination, at the service too, and start over.
	Restart bool

	// DetectContentType returns the content type for the first bytes of a
	// source, at most 512, if neither ContentType nor DefaultContentType of its
	// Spec is set. [net/http.DetectContentType] does. It is not called for an
	// empty source. If it is nil, the type is application/octet-stream.
	DetectContentType func(head []byte) string

	// EncryptionKeys are the keys for saved uploads whose objects are encrypted
	// with a customer-supplied key, in any order. A saved upload has only the
	// SHA-256 of its key. A Spec of a call of File may have its key instead.
	EncryptionKeys []session.EncryptionKey

	// Objects looks at the object at a destination, for preconditions. nil
	// uses one GET of the JSON API.
	Objects Objects

	// Observer gets the events of every upload: one at a time for each
	// upload, in order, in a goroutine of its own. A slow Observer delays
	// nothing; it gets fewer reports of progress. A call returns after the
	// Observer had its last event, which has a terminal kind. Once the context
	// of a call is done, the call waits for the Observer no longer than 100 ms.
	// The Observer then gets the terminal event when it returns, and no other.
	Observer func(Event)

	// Exchange gets a description of every request and its reply, in the
	// goroutine of the Observer: never while the Observer is called for the
	// same upload, and in order with the events. It delays nothing either, and
	// every description is queued until it is delivered.
	Exchange func(Exchange)

	// Logger gets a line for each exchange (debug), and one for each upload
	// that was resumed or failed (info). nil logs nothing.
	Logger *slog.Logger
}

// CommitEvery asks for a durable offset after a number of bytes, or after a time,
// or after whichever comes first. A field that is 0 sets no bound.
//
// The service reports a durable offset in the reply to a request, so a bound makes
// more requests. Each costs one round trip, in which nothing is sent. At 100 MiB/s,
// with 20 ms or 50 ms until each reply, 1 GiB takes this much longer than without
// a bound:
//
//	Bytes    requests more  20 ms           50 ms
//	256 MiB              3   0.06 s, 0.6 %   0.15 s, 1.5 %
//	64 MiB              15   0.3 s, 3 %      0.75 s, 7 %
//	16 MiB              63   1.3 s, 12 %     3.2 s, 31 %
//	4 MiB              255   5.1 s, 50 %    12.8 s, 125 %
//	1 MiB            1,023  20.5 s, 200 %   51.2 s, 500 %
//
// With a [Options.Store], each request of a file also saves the upload first, with
// two fsyncs. Both took 10 ms on the machine of this measurement.
//
// [Options.ChunkSize] remains the upper bound of a request. A stream sends at most
// one [Options.Window] per request anyway. A file of at most 8 MiB that is larger
// than Bytes gets a session; otherwise it goes in one request, which makes nothing
// durable before its end, even if Time is set.
type CommitEvery struct {
	// Bytes is rounded up to a multiple of 256 KiB.
	Bytes int64

	// Time is about how long a request takes. Its size follows from the rate of
	// the one before; the first carries 256 KiB. No request carries less, so on a
	// slow link the time between two offsets may be longer. More than a minute
	// has no effect unless ChunkSize is set.
	Time time.Duration
}

const (
	defaultStallTimeout = 2 * time.Minute
	defaultStallRate    = 64 << 10
	defaultStreamMemory = 128 << 20
)

// withDefaults checks the options and fills in what is zero.
func (o Options) withDefaults() (Options, error) {
	if err := o.Policy.Validate(); err != nil {
		return o, fmt.Errorf("retry policy: %w", err)
	}
	switch {
	case o.RetryFor < 0:
		return o, fmt.Errorf("retry for %v: want a duration that is not negative", o.RetryFor)
	case o.ChunkSize < 0:
		return o, fmt.Errorf("chunk size %d: want a size that is not negative", o.ChunkSize)
	case o.CommitEvery.Bytes < 0 || o.CommitEvery.Time < 0:
		return o, fmt.Errorf("commit every %d bytes, %v: want values that are not negative", o.CommitEvery.Bytes, o.CommitEvery.Time)
	case o.Parallel.check() != nil:
		return o, o.Parallel.check()
	case o.StallRate < 0:
		return o, fmt.Errorf("stall rate %d: want a rate that is not negative", o.StallRate)
	case o.Window < 0 || o.Window%chunk.Granularity != 0:
		return o, fmt.Errorf("window %d: want a multiple of %d", o.Window, chunk.Granularity)
	case o.Memory < 0:
		return o, fmt.Errorf("memory %d: want a size that is not negative", o.Memory)
	}
	if o.Memory == 0 {
		o.Memory = defaultStreamMemory
	}
	o.ChunkSize = chunk.Ceil(min(o.ChunkSize, maxObject))
	o.CommitEvery.Bytes = chunk.Ceil(min(o.CommitEvery.Bytes, maxObject))
	if o.Gate == nil {
		o.Gate = &backoff.Gate{}
	}
	if o.StallTimeout == 0 {
		o.StallTimeout = defaultStallTimeout
	}
	if o.StallRate == 0 {
		o.StallRate = defaultStallRate
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
