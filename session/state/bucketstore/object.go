package bucketstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"gcsup/internal/bucket"
	"gcsup/internal/checksum"
	"gcsup/session"
	"gcsup/session/state"
)

// Keys of the metadata of an object whose upload is leased.
const (
	leaseKey    = "gcsup-lease"    // the name of the lease, which is unique
	hostKey     = "gcsup-host"     // the machine of the holder
	pidKey      = "gcsup-pid"      // the number of its process
	processKey  = "gcsup-process"  // what shows another process on that machine whether it still runs
	holderKey   = "gcsup-holder"   // its name, if it has another one
	sinceKey    = "gcsup-since"    // when it acquired the lease, by the service's clock; missing in its first write
	ttlKey      = "gcsup-lease-ms" // duration of the lease after the update of the object, in ms
	releasedKey = "gcsup-released" // the name of the previous lease, if it was released
	replacedKey = "gcsup-replaced" // the generation that this one replaced; 0 if there was none
)

// entry is the lease as the metadata of the object describes it. The zero entry means that the
// object does not exist.
type entry struct {
	generation int64
	size       int64
	lease      string          // "" if the upload is not leased
	released   string          // the previous lease, if it was released
	replaced   int64           // the generation that this one replaced; -1 if it is not known
	process    process         // of the holder
	holder     state.HeldError // without the fields that change with a renewal
	updated    time.Time       // when the service stored the object
	date       time.Time       // the Date of the reply; zero if there was none
}

// heldError returns the error for another caller who wants the lease, which expires after left.
func (e entry) heldError(left time.Duration) *state.HeldError {
	held := e.holder
	held.Renewal, held.Left = e.generation, left
	return &held
}

// newEntry returns the entry of an object. date is the Date of the reply that described it.
func newEntry(o *session.Object, date time.Time) entry {
	e := entry{
		generation: o.Generation, size: o.Size, updated: o.Updated, date: date,
		lease: o.Metadata[leaseKey], released: o.Metadata[releasedKey], replaced: -1,
	}
	if replaced, err := strconv.ParseInt(o.Metadata[replacedKey], 10, 64); err == nil {
		e.replaced = replaced
	}
	ttl, err := strconv.ParseInt(o.Metadata[ttlKey], 10, 64)
	if err != nil {
		e.lease = "" // no Store wrote it
		return e
	}
	e.process = parseProcess(o.Metadata[processKey])
	e.holder = state.HeldError{
		Host: o.Metadata[hostKey], Message: o.Metadata[holderKey], Since: o.Updated,
		TTL: min(max(time.Duration(ttl)*time.Millisecond, minTTL), maxTTL),
	}
	e.holder.PID, _ = strconv.Atoi(o.Metadata[pidKey]) // 0 if it is not known
	if since, err := time.Parse(time.RFC3339Nano, o.Metadata[sinceKey]); err == nil {
		e.holder.Since = since
	}
	return e
}

// spec returns the Spec of the object of an upload.
func (s *Store) spec(id string) session.Spec {
	return session.Spec{Bucket: s.bucket, Object: s.prefix + id + objectSuffix, UserProject: s.opts.UserProject}
}

// look reads the entry of an upload.
func (s *Store) look(ctx context.Context, id string) (entry, error) {
	r, err := s.repeat(ctx, func(ctx context.Context) session.Reply { return described(s.client.Stat(ctx, s.spec(id))) })
	switch {
	case err != nil:
		return entry{}, err
	case r.Status == 200 && r.Object != nil:
		return newEntry(r.Object, r.Date), nil
	case r.Status == 404:
		return entry{}, nil
	}
	return entry{}, s.refusal(r)
}

// read reads the content of a generation of an object; 0 is the current one. The error
// wraps state.ErrNotFound if it does not exist.
func (s *Store) read(ctx context.Context, id string, generation int64) ([]byte, error) {
	var content []byte
	r, err := s.repeat(ctx, func(ctx context.Context) (r session.Reply) {
		content, r = bucket.Read(ctx, s.client, s.spec(id), generation)
		if r.Status == 404 && !r.FromService {
			r = s.confirmMissing(ctx, id, generation, r)
		}
		return r
	})
	switch {
	case err != nil:
		return nil, err
	case r.Status == 404:
		return nil, state.ErrNotFound
	case content == nil:
		return nil, s.refusal(r)
	}
	return content, nil
}

// confirmMissing reads the metadata of an object after a download returned 404. The refusal of a
// download has no JSON that distinguishes it from the reply of a proxy, and would be retried.
func (s *Store) confirmMissing(ctx context.Context, id string, generation int64, r session.Reply) session.Reply {
	stat := s.client.Stat(ctx, s.spec(id))
	switch {
	case stat.Status == 404:
		return stat
	case stat.Object != nil && generation != 0 && stat.Object.Generation != generation:
		r.FromService = true // the object was replaced
	}
	return r
}

// insert replaces the object of an upload if it has the given generation; 0 means that it must
// not exist. Otherwise the reply has the status 412. began is when the last request was sent.
func (s *Store) insert(ctx context.Context, id string, generation int64, metadata map[string]string, content []byte) (r session.Reply, began moment, err error) {
	spec := s.spec(id)
	spec.IfGenerationMatch = &generation
	spec.ContentType = "application/octet-stream"
	spec.CacheControl = "no-store"
	spec.Metadata = metadata
	metadata[replacedKey] = strconv.FormatInt(generation, 10)
	crc := checksum.Update(0, content)
	r, err = s.repeat(ctx, func(ctx context.Context) session.Reply {
		began = s.clock()
		// A repeat has another token, so that the service executes it: the lease counts from
		// the moment when it is sent.
		client := s.client.WithIntention(rand.Text())
		return described(client.Insert(ctx, spec, int64(len(content)), crc, bytes.NewReader(content)))
	})
	return r, began, err
}

// described returns r. If r should describe an object and does not, because it was
// cut or is not from the service, described returns it as a lost reply.
func described(r session.Reply) session.Reply {
	if r.Status == 200 && (r.Object == nil || r.Object.Generation == 0 || r.Object.Updated.IsZero()) {
		r.Status, r.Object, r.Err = 0, nil, errNoObject
	}
	return r
}

var errNoObject = errors.New("the reply does not describe the object")

// remove deletes a generation of an object.
func (s *Store) remove(ctx context.Context, id string, generation int64) (session.Reply, error) {
	spec := s.spec(id)
	spec.IfGenerationMatch = &generation
	client := s.client.WithIntention(rand.Text())
	return s.repeat(ctx, func(ctx context.Context) session.Reply { return bucket.Delete(ctx, client, spec) })
}
