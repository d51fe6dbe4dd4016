package bucketstore

import (
	"cmp"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/internal/bucket"
	"gcsup/session"
	"gcsup/session/state"
)

const (
	defaultTTL      = 2 * time.Minute
	minTTL          = 2 * time.Second
	maxTTL          = time.Hour
	defaultRetryFor = 10 * time.Minute

	// objectSuffix is the end of the name of each object.
	objectSuffix = ".gcsup"
)

// ErrSealed means that a saved upload cannot be unsealed with the key of the Store: it was sealed
// with another key, is not sealed, or was modified. A Store without a key returns it for any
// sealed upload.
var ErrSealed = errors.New("cannot unseal the saved upload: it is not sealed with this key")

// ErrSlow means that a lease cannot be acquired, or renewed in time, because the bucket answers too
// slowly. A longer TTL helps.
var ErrSlow = errors.New("the state bucket answers slower than the lease allows")

// Options configure a [Store]. AEAD or Unsealed is required.
type Options struct {
	// AEAD seals the saved uploads. All programs that share them need the same key. Nonces
	// are random and have AEAD.NonceSize bytes: AES-GCM and XChaCha20-Poly1305 are suitable.
	AEAD cipher.AEAD

	// Unsealed saves the session URIs in plain text. Any reader of the bucket can then
	// write to the sessions.
	Unsealed bool

	// TTL is how long a lease lasts after its last renewal. When a process dies, processes on other
	// machines must wait that long for its uploads. 0 is 2 minutes. The minimum is 2 s, the maximum
	// 1 h.
	TTL time.Duration

	// RetryFor is how long a failed request of the Store is retried. 0 means as long as
	// the requests of the upload that waits for it. Other calls then retry for 10 minutes.
	RetryFor time.Duration

	// Holder names this process in the errors of other processes: [state.HeldError].Message.
	// The default is the number of the process and the name of the machine.
	Holder string

	// UserProject is the project that is billed for requests, for requester-pays buckets.
	UserProject string
}

// Store is a [state.Store] in a bucket. It is safe for concurrent use.
type Store struct {
	client         *session.Client
	bucket, prefix string // the prefix is "" or ends with "/"
	opts           Options
	clock          func() moment
	self           process
	ended          func(process) bool // see ended
	warnings       []string
	reached        atomic.Bool // the service answered a request

	mu     sync.Mutex
	leases map[string]*lease   // held by this Store, by ID
	seen   map[string]sighting // of leases of other processes, by ID
}

var (
	_ state.Leaser      = (*Store)(nil)
	_ state.LockChecker = (*Store)(nil)
)

// Open opens the store in bucket. The names of its objects begin with prefix and a slash, or have
// no prefix if it is "". opts must have AEAD or Unsealed.
//
// It reads the configuration of the bucket with the permission storage.buckets.get. Without this
// permission, there is a warning. The error wraps [session.ErrNotFound] if the bucket does not
// exist, and [session.ErrInvalid] if its objects cannot be replaced and deleted or opts is not
// valid.
func Open(ctx context.Context, client *session.Client, bucket, prefix string, opts *Options) (*Store, error) {
	s, err := newStore(client, bucket, prefix, opts)
	if err == nil {
		err = s.inspect(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(client *session.Client, bucket, prefix string, opts *Options) (*Store, error) {
	opts = cmp.Or(opts, &Options{})
	s := &Store{client: client, bucket: bucket, opts: *opts, clock: now, self: thisProcess(), ended: ended, leases: make(map[string]*lease), seen: make(map[string]sighting)}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		s.prefix = prefix + "/"
	}
	s.opts.TTL = cmp.Or(s.opts.TTL, defaultTTL)
	switch {
	case s.opts.TTL < minTTL || s.opts.TTL > maxTTL:
		return nil, s.invalid("leases of %v: want %v to %v", opts.TTL, minTTL, maxTTL)
	case s.opts.RetryFor < 0:
		return nil, s.invalid("retry for %v: want a duration that is not negative", opts.RetryFor)
	case s.opts.AEAD == nil && !s.opts.Unsealed:
		return nil, s.invalid("saved uploads have secrets: a key is required to seal them")
	case s.opts.AEAD != nil && s.opts.Unsealed:
		return nil, s.invalid("either a key or no sealing")
	}
	return s, s.about(s.spec("id").Validate())
}

// about returns err with the name of the Store, or nil for nil.
func (s *Store) about(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("state in gs://%s/%s: %w", s.bucket, strings.TrimSuffix(s.prefix, "/"), err)
}

// invalid returns an error that wraps session.ErrInvalid.
func (s *Store) invalid(format string, args ...any) error {
	return s.about(fmt.Errorf("%w: %s", session.ErrInvalid, fmt.Sprintf(format, args...)))
}

// Warnings returns one sentence for each setting that makes the bucket keep replaced
// objects, and with them the URIs of earlier sessions. If the settings cannot be
// read, it returns a sentence about that. It is empty if there is nothing to report.
func (s *Store) Warnings() []string { return s.warnings }

// inspect reads the configuration of the bucket.
func (s *Store) inspect(ctx context.Context) error {
	var b *bucket.Config
	r, err := s.repeat(ctx, func(ctx context.Context) (r session.Reply) {
		b, r = bucket.ReadConfig(ctx, s.client, s.bucket, s.opts.UserProject)
		return r
	})
	switch {
	case err != nil:
		return err
	case b != nil:
		return s.judge(b)
	case r.Status == 403:
		s.warnings = append(s.warnings, fmt.Sprintf("the configuration of the bucket %s cannot be read (storage.buckets.get): if it has versioning or soft delete, it keeps the session URIs of earlier uploads", s.bucket))
		return nil
	}
	return s.refusal(r)
}

// judge returns an error if objects cannot be replaced and deleted, and sets the warnings.
func (s *Store) judge(b *bucket.Config) error {
	switch {
	case b.Retention > 0:
		return s.invalid("the bucket has a retention policy of %v, and saved uploads must be replaced and deleted", b.Retention)
	case b.DefaultEventBasedHold:
		return s.invalid("the bucket holds new objects (default event-based hold), and saved uploads must be replaced and deleted")
	}
	if b.Versioning {
		s.warnings = append(s.warnings, fmt.Sprintf("the bucket %s has versioning: it keeps, and bills, every saved version of an upload with its session URI", s.bucket))
	}
	if b.SoftDelete > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("the bucket %s has soft delete: it keeps, and bills, every saved version of an upload with its session URI for %s", s.bucket, days(b.SoftDelete)))
	}
	return nil
}

// days formats a duration, in days if it is two or more whole days.
func days(d time.Duration) string {
	const day = 24 * time.Hour
	if d%day != 0 || d < 2*day {
		return d.String()
	}
	return fmt.Sprintf("%d days", d/day)
}

// Load reads a saved upload. It needs no lease and changes nothing. The error wraps
// [state.ErrNotFound] if there is none, and [ErrSealed] if it cannot be unsealed.
func (s *Store) Load(ctx context.Context, id string) (*state.Upload, error) {
	if !state.ValidID(id) {
		return nil, fmt.Errorf("%w: %q", state.ErrNotFound, id)
	}
	content, err := s.read(ctx, id, 0)
	if err != nil {
		return nil, fmt.Errorf("load upload %s: %w", id, err)
	}
	return s.decode(id, content)
}

// List returns the sorted IDs of the saved uploads.
func (s *Store) List(ctx context.Context) (ids []string, err error) {
	err = s.list(ctx, func(name string, size int64) {
		if id, ok := s.idOf(name); ok && size > 0 {
			ids = append(ids, id)
		}
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// idOf returns the ID of the upload whose object has that name. An object without content
// is only a lease.
func (s *Store) idOf(name string) (id string, ok bool) {
	id, ok = strings.CutSuffix(strings.TrimPrefix(name, s.prefix), objectSuffix)
	return id, ok && state.ValidID(id)
}

// Writes reports whether name can be that of an object that a Store writes: a saved upload, its
// lease, or a reading of the service's clock. The prefix of the Store need not be known.
func Writes(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	for _, suffix := range []string{objectSuffix, clockSuffix} {
		if id, ok := strings.CutSuffix(base, suffix); ok && state.ValidID(id) {
			return true
		}
	}
	return false
}

// list calls each for the objects whose names have the prefix, in the order of their names.
func (s *Store) list(ctx context.Context, each func(name string, size int64)) error {
	query := bucket.Query{Bucket: s.bucket, Prefix: s.prefix, UserProject: s.opts.UserProject}
	for {
		var page *bucket.Page
		r, err := s.repeat(ctx, func(ctx context.Context) (r session.Reply) {
			page, r = bucket.List(ctx, s.client, query)
			return r
		})
		if err == nil && page == nil {
			err = s.refusal(r)
		}
		if err != nil {
			return err
		}
		for _, o := range page.Objects {
			each(o.Name, o.Size)
		}
		if page.NextPageToken == "" {
			return nil
		}
		query.PageToken = page.NextPageToken
	}
}

// Sweep deletes the objects of expired leases whose upload was never saved, because
// the process died. It returns their number. With dryRun it deletes none. A lease
// of a saved upload is a part of its object, and stays. Sweep also deletes the objects that
// were written to read the service's clock, and that their process could not delete.
//
// If a process was not dead, but suspended for longer than its lease, it fails with
// [state.ErrInUse] when it continues: it cannot know who deleted the object.
func (s *Store) Sweep(ctx context.Context, dryRun bool) (n int, err error) {
	var empty, clocks []string
	err = s.list(ctx, func(name string, size int64) {
		id, ok := s.idOf(name)
		switch {
		case ok && size == 0:
			empty = append(empty, id)
		case !dryRun && s.isClock(name, size):
			clocks = append(clocks, name)
		}
	})
	if err != nil {
		return 0, err
	}
	for _, name := range clocks { // the process that wrote it died, or could not delete it
		s.discard(ctx, session.Spec{Bucket: s.bucket, Object: name, UserProject: s.opts.UserProject})
	}
	for _, id := range empty {
		swept, err := s.sweep(ctx, id, dryRun)
		if err != nil {
			return n, fmt.Errorf("lease of upload %s: %w", id, err)
		}
		if swept {
			n++
		}
	}
	return n, nil
}

// sweep deletes the object of an upload if it is the remains of an expired lease. A
// listing showed that it has no content.
func (s *Store) sweep(ctx context.Context, id string, dryRun bool) (bool, error) {
	e, err := s.look(ctx, id)
	if err != nil || e.lease == "" || e.size > 0 {
		return false, err
	}
	if left, err := s.left(ctx, id, e); err != nil || left > 0 {
		return false, err
	}
	if dryRun {
		return true, nil
	}
	r, err := s.remove(ctx, id, e.generation)
	switch {
	case err != nil:
		return false, err
	case r.Status == 412, r.Status == 404: // another process acquired the lease, or swept it
		return false, nil
	case r.Status >= 200 && r.Status < 300:
		return true, nil
	}
	return false, s.refusal(r)
}

// Locked reports whether any process, including this one, holds the lease of an upload. To find out
// whether a lease has expired, it writes an object for a moment. If the caller has no permission to
// write, a lease counts as held.
func (s *Store) Locked(ctx context.Context, id string) (bool, error) {
	if !state.ValidID(id) {
		return false, nil
	}
	left := time.Duration(0)
	e, err := s.look(ctx, id)
	if err == nil {
		left, err = s.left(ctx, id, e)
	}
	if errors.Is(err, session.ErrPermission) && e.lease != "" {
		return true, nil // a caller that must not write cannot find out whether it has expired
	}
	if err != nil {
		return false, fmt.Errorf("lease of upload %s: %w", id, err)
	}
	return left > 0, nil
}

// Lock acquires the lease of an upload, as Acquire does, and holds it until unlock is called.
func (s *Store) Lock(ctx context.Context, id string) (unlock func(), err error) {
	l, err := s.acquire(ctx, id, context.Background())
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()
		_ = l.Release(ctx, nil)
	}), nil
}

// unlockTimeout bounds the release of a lease. If it fails, the lease expires.
const unlockTimeout = 10 * time.Second

// Save saves an upload whose lease this Store holds. Otherwise the error wraps [state.ErrInUse].
func (s *Store) Save(ctx context.Context, t *state.Upload) error {
	l, err := s.held(t.ID)
	if err != nil {
		return err
	}
	return l.Save(ctx, t)
}

// Delete deletes a saved upload whose lease this Store holds. Otherwise the error wraps
// [state.ErrInUse]. If the upload is not saved, Delete returns nil.
func (s *Store) Delete(ctx context.Context, id string) error {
	l, err := s.held(id)
	if err != nil {
		return err
	}
	return l.Delete(ctx)
}

// held returns the lease that this Store holds of an upload.
func (s *Store) held(id string) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[id]; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("%w: upload %s is not locked", state.ErrInUse, id)
}
