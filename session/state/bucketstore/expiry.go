package bucketstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"maps"
	"strings"
	"time"

	"gcsup/internal/bucket"
	"gcsup/session"
	"gcsup/session/state"
)

// clockSuffix is the end of the name of an object that was written to read the service's clock.
const clockSuffix = ".gcsup-clock"

// sighting is when this Store first saw a renewal of a lease.
type sighting struct {
	generation int64
	at         moment
}

// left returns the time until the lease of e, the entry of an upload, expires. It is 0 if it has
// expired, or if its holder has ended.
//
// Otherwise only the service's clock decides that: the one that sets the update times of objects. How
// far it has advanced since the renewal shows an object that is written now. This costs two
// requests, and is therefore done only if the lease seems to have expired. The guess may be
// wrong: it uses the Date of a reply, which may be that of another clock, and the clocks of
// this machine since it first saw the renewal.
func (s *Store) left(ctx context.Context, id string, e entry) (time.Duration, error) {
	if e.lease == "" || s.died(e.process) {
		s.unsee(id)
		return 0, nil
	}
	ttl := e.holder.TTL
	age := max(s.see(id, e.generation), e.date.Sub(e.updated), 0)
	if age < ttl {
		return ttl - age, nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return 0, err
	}
	return min(max(ttl-now.Sub(e.updated), 0), ttl), nil
}

// see returns the time since this Store first saw a generation of an upload, by the clocks of this
// machine.
func (s *Store) see(id string, generation int64) time.Duration {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.seen[id]; first.generation == generation {
		return now.since(first.at)
	}
	maps.DeleteFunc(s.seen, func(_ string, old sighting) bool { return now.since(old.at) > 2*maxTTL })
	s.seen[id] = sighting{generation, now}
	return 0
}

// unsee forgets the generation of an upload that is not leased.
func (s *Store) unsee(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
}

// now returns the time of the service's clock. It writes an object and deletes it. If the deletion
// fails, Sweep deletes the object.
func (s *Store) now(ctx context.Context) (time.Time, error) {
	spec := session.Spec{Bucket: s.bucket, Object: s.prefix + rand.Text() + clockSuffix, UserProject: s.opts.UserProject}
	r, err := s.repeat(ctx, func(ctx context.Context) session.Reply {
		return described(s.client.Insert(ctx, spec, 0, 0, bytes.NewReader(nil)))
	})
	if err != nil {
		return time.Time{}, err
	}
	if r.Object == nil {
		return time.Time{}, s.refusal(r)
	}
	s.discard(ctx, spec)
	return r.Object.Updated, nil
}

// isClock reports whether now wrote an object with that name and size.
func (s *Store) isClock(name string, size int64) bool {
	text, ok := strings.CutSuffix(strings.TrimPrefix(name, s.prefix), clockSuffix)
	return ok && size == 0 && len(text) == len(rand.Text()) && state.ValidID(text)
}

// discard deletes an object that now wrote, if possible.
func (s *Store) discard(ctx context.Context, spec session.Spec) {
	_ = s.once(ctx, func(ctx context.Context) session.Reply { return bucket.Delete(ctx, s.client, spec) })
}
