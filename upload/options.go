package upload

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"strconv"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/objectmeta"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/source"
)

// Options configure an [Uploader]. The zero value uses the defaults.
type Options struct {
	// Endpoint is the scheme and host of the service. "" is
	// https://storage.googleapis.com.
	Endpoint string

	// Store keeps interrupted uploads, so that another call or process can resume them:
	// see [state.OpenDir]. If it is nil, no upload can be resumed. Policy and RetryFor
	// also apply to the requests of a bucketstore.
	Store state.Store

	// Policy gives the length of the wait before each retry. The zero value is
	// min(2^n s + random 0..1000 ms, 32 s).
	Policy backoff.Policy

	// RetryFor is how long an upload is retried without newly committed bytes. 0 means a
	// number of retries that grows with the size ([backoff.Retries]). An upload stops
	// earlier if the next wait would exceed RetryFor.
	RetryFor time.Duration

	// Breaker is the circuit breaker, which limits the requests of failing uploads to a service
	// that is down: see [backoff.Breaker]. Uploaders for one endpoint can share one. nil means one
	// of this Uploader, and [backoff.NoBreaker] none.
	Breaker *backoff.Breaker

	// RequestRates throttles the requests to a bucket that answered 429 because it got too many of them:
	// see [backoff.Rate]. Uploaders for one endpoint can share them. nil means rates of this Uploader,
	// and [NoRequestRates] none.
	RequestRates *RequestRates

	// RateLimit limits the object data of all uploads together. A program may change the
	// limit while uploads run. Uploaders can share one. nil means no limit.
	RateLimit *RateLimit

	// AtRisk bounds the bytes at risk of all uploads together: see [AtRisk]. Uploaders over one link can
	// share one. nil means a bound of this Uploader.
	AtRisk *AtRisk

	// ChunkSize bounds the bytes of one request, for networks that cut long ones, and for programs
	// that must know early which bytes are committed: the service reports that in the reply to
	// each request. It is rounded up to a multiple of 256 KiB. For a bound of 10 s at 2 MiB/s, set
	// 20 MiB. 0 means at most 1 GiB for the first request, and then about a minute for each
	// request. A request of a stream carries at most one Window. A file of at most 8 MiB gets a
	// session only if it is larger than ChunkSize.
	//
	// Each further request costs one round trip, in which nothing is sent. At 100 MiB/s, with
	// round trips of 20 ms or 50 ms, 1 GiB takes this much longer:
	//
	//	ChunkSize  more requests  20 ms           50 ms
	//	256 MiB                3   0.06 s, 0.6 %   0.15 s, 1.5 %
	//	64 MiB                15   0.3 s, 3 %      0.75 s, 7 %
	//	16 MiB                63   1.3 s, 12 %     3.2 s, 31 %
	//	4 MiB                255   5.1 s, 50 %    12.8 s, 125 %
	//	1 MiB              1,023  20.5 s, 200 %   51.2 s, 500 %
	//
	// With a Store, each request of a file also saves the upload first, with two fsyncs,
	// which took 10 ms on one machine.
	ChunkSize int64

	// Parallel sends large files and streams in parts over several connections. nil means one connection: new
	// uploads have no parts, and those of saved uploads are sent one after the other. Saved uploads can be
	// resumed, queried and canceled with any value.
	Parallel *Parts

	// Spool keeps the bytes of streams on disk, so that another process can finish them. It
	// needs a Store. nil keeps them in memory.
	Spool *Spool

	// A request is canceled and replaced by a status query after StallTimeout without
	// progress. A request that is slower than StallRate, in bytes per second, is
	// canceled too, but later: at half of StallRate, after twice StallTimeout. The
	// defaults are 2 minutes and 64 KiB/s. A negative StallTimeout disables this. A
	// request that makes an object from its parts gets at least 10 minutes, because the
	// service may need several.
	StallTimeout time.Duration
	StallRate    int64

	// Window is the maximum number of bytes of a stream in one request: a multiple of 256 KiB.
	// They are kept in memory until the service has committed them. A stream uses two windows. 0
	// is 16 MiB. For a stream in parts, see [Parts], it bounds only what is read before the parts
	// begin.
	Window int

	// Memory bounds the windows of all streams together, in bytes. Each stream gets an
	// equal share, and its windows become shorter when others start. If the share is at
	// most Window, a stream whose source is much faster than the service has one window
	// as large as the share, instead of two. 0 means 128 MiB.
	//
	// A window can always have 1 MiB, so that no stream waits for another one. While the number of streams
	// does not change, they use at most Memory, or 2 MiB each if that is more. A stream in parts can always
	// have 5 MiB. The parts of files in multipart uploads, see [ByMultipart], use the rest. A window that was
	// filled while there were fewer streams is kept until the service has committed it. While the service does
	// not answer, such windows can take all of Memory. Each other stream then uses up to 2 MiB in addition.
	Memory int64

	// RestartChanged starts over from byte 0 if a file changed since its saved upload
	// began, instead of failing with [session.ErrSourceChanged]. A file that changes
	// during the call still fails.
	RestartChanged bool

	// Restart makes a call of File discard a saved upload of the same file to
	// the same destination, at the service too, and start over.
	Restart bool

	// BriefObject asks the service for less about an object that is made in a single request: Result.Object
	// then has only Bucket, Name, Generation, Size, CRC32C and MD5. If the bucket has ACLs, this saves a
	// program that uploads many small files about a seventh of its CPU time.
	BriefObject bool

	// DetectContentType returns the content type for the first bytes of a source, at most
	// 512, if its Spec has no ContentType and no DefaultContentType.
	// [net/http.DetectContentType] is suitable. It is not called for an empty source. If
	// it is nil, the type is application/octet-stream.
	DetectContentType func(head []byte) string

	// EncryptionKeys are the keys for saved uploads whose objects are encrypted
	// with a customer-supplied key, in any order. A saved upload has only the
	// SHA-256 of its key. A Spec of a call of File may have its key instead.
	EncryptionKeys []session.EncryptionKey

	// Observer is called with the events of every upload: one at a time for each upload,
	// in order, in a separate goroutine. A slow Observer delays no upload; it gets fewer
	// Progress events. A call returns after the Observer has returned from the last
	// event, which has a terminal kind. If the context of the call is done, the call
	// waits for the Observer for at most 100 ms. The Observer then gets only the terminal
	// event, after it has returned from the event before.
	Observer func(Event)

	// Exchange is called with a description of every request, its reply and the decision
	// that follows, in the goroutine of the Observer. It is never called during a call of
	// the Observer for the same upload, and the order is that of the events. It delays no
	// upload either. Every description is queued until it is delivered.
	Exchange func(Exchange)

	// Logger logs each exchange with the decision that follows (debug), and each upload
	// that was resumed or failed, and each failed request of the Store (info). nil logs
	// nothing.
	Logger *slog.Logger
}

const (
	defaultStallTimeout = 2 * time.Minute
	defaultStallRate    = 64 << 10
	defaultStreamMemory = 128 << 20
)

// maxObject is the service's limit.
const maxObject = parts.MaxObject

// withDefaults checks the options and replaces zero values by the defaults.
func (o Options) withDefaults() (Options, error) {
	if err := o.Policy.Validate(); err != nil {
		return o, fmt.Errorf("retry policy: %w", err)
	}
	switch {
	case o.RetryFor < 0:
		return o, fmt.Errorf("retry for %v: want a duration that is not negative", o.RetryFor)
	case o.RateLimit != nil && o.RateLimit.limit == nil:
		return o, errors.New("rate limit: want a value of NewRateLimit")
	case o.ChunkSize < 0:
		return o, fmt.Errorf("chunk size %d: want a size that is not negative", o.ChunkSize)
	case o.Parallel.check() != nil:
		return o, o.Parallel.check()
	case o.Spool.check(o.Store) != nil:
		return o, o.Spool.check(o.Store)
	case o.StallRate < 0:
		return o, fmt.Errorf("stall rate %d: want a rate that is not negative", o.StallRate)
	case o.Window < 0 || o.Window%chunk.Granularity != 0:
		return o, fmt.Errorf("window %d: want a multiple of %d", o.Window, chunk.Granularity)
	case o.Memory < 0:
		return o, fmt.Errorf("memory %d: want a size that is not negative", o.Memory)
	}
	if o.Parallel != nil {
		o.Parallel = new(*o.Parallel)
	}
	if o.Spool != nil {
		o.Spool = new(*o.Spool)
	}
	o.Memory = cmp.Or(o.Memory, defaultStreamMemory)
	o.ChunkSize = chunk.Ceil(min(o.ChunkSize, maxObject))
	o.Breaker = cmp.Or(o.Breaker, &backoff.Breaker{})
	o.AtRisk = cmp.Or(o.AtRisk, &AtRisk{})
	o.RequestRates = cmp.Or(o.RequestRates, &RequestRates{})
	o.StallTimeout = cmp.Or(o.StallTimeout, defaultStallTimeout)
	o.StallRate = cmp.Or(o.StallRate, defaultStallRate)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o, nil
}

// single reports whether a file of that size is sent in a single request. The request
// cannot be resumed, but carries the checksum.
func (o *Options) single(size int64) bool {
	return size <= smallLimit && (o.ChunkSize == 0 || size <= o.ChunkSize)
}

// smallLimit is the maximum size of a file that is sent in one request.
const smallLimit = 8 << 20

// encryptionKey returns key with its secret, which may be one of
// [Options.EncryptionKeys].
func (o *Options) encryptionKey(key session.EncryptionKey) (session.EncryptionKey, error) {
	if key.IsZero() || key.HasSecret() {
		return key, nil
	}
	for _, k := range o.EncryptionKeys {
		if k.HasSecret() && k.SHA256() == key.SHA256() {
			return k, nil
		}
	}
	return key, fmt.Errorf("%w: its SHA-256 is %s", session.ErrEncryptionKey, key.SHA256())
}

// unlock returns the Spec of a saved upload with its encryption key, which is want if
// that is set.
func (o *Options) unlock(saved Spec, want session.EncryptionKey) (Spec, error) {
	if want.HasSecret() && want.SHA256() == saved.EncryptionKey.SHA256() {
		saved.EncryptionKey = want
	}
	key, err := o.encryptionKey(saved.EncryptionKey)
	saved.EncryptionKey = key
	return saved, err
}

// detected returns spec with the default content type, if it depends on the first bytes of the source,
// which head returns. It does nothing if there are none: the upload reports an error of
// reading.
func (o *Options) detected(spec Spec, head func() []byte) Spec {
	if o.DetectContentType == nil || spec.ContentType != "" || spec.DefaultContentType != "" {
		return spec
	}
	if first := head(); len(first) > 0 {
		spec.DefaultContentType = o.DetectContentType(first)
	}
	return spec
}

// withPOSIX returns spec with the attributes of a file in its metadata.
func withPOSIX(spec Spec, info fs.FileInfo) Spec {
	if info == nil {
		return spec
	}
	spec = withMetadata(spec, objectmeta.FileModTime, info.ModTime().Unix())
	if p, ok := source.POSIXOf(info); ok {
		spec.Metadata[objectmeta.FileAccessTime] = strconv.FormatInt(p.Accessed, 10)
		spec.Metadata[objectmeta.FileUID] = strconv.FormatUint(uint64(p.UID), 10)
		spec.Metadata[objectmeta.FileGID] = strconv.FormatUint(uint64(p.GID), 10)
		spec.Metadata[objectmeta.FileMode] = fmt.Sprintf("%03o", info.Mode().Perm())
	}
	return spec
}

// withMetadata returns spec with a number in a copy of its metadata.
func withMetadata(spec Spec, key string, n int64) Spec {
	metadata := make(map[string]string, len(spec.Metadata)+1)
	maps.Copy(metadata, spec.Metadata)
	metadata[key] = strconv.FormatInt(n, 10)
	spec.Metadata = metadata
	return spec
}
