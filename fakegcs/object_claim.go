package fakegcs

import (
	"slices"
	"strings"
	"sync"
)

// claims lets one request at a time change an object of a directory. [store.mu] is not
// locked while a request writes the record of an object, so that writers of other objects
// and readers do not wait for the file system. A claim is locked before [store.mu], and
// after a session or a multipart upload. The zero value has no claims.
type claims struct {
	buckets sync.RWMutex // read-locked while an object changes
	mu      sync.Mutex   // guards objects
	objects map[objectName]*claim
}

type objectName struct{ bucket, name string }

// claim is the right to change an object.
type claim struct {
	mu    sync.Mutex
	users int // requests that have the claim or wait for it; guarded by claims.mu
}

func (c *claims) take(o objectName) {
	c.mu.Lock()
	if c.objects == nil {
		c.objects = map[objectName]*claim{}
	}
	own := c.objects[o]
	if own == nil {
		own = &claim{}
		c.objects[o] = own
	}
	own.users++
	c.mu.Unlock()
	own.mu.Lock()
}

func (c *claims) release(o objectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.objects[o]
	own.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(c.objects, o)
	}
}

// claim waits until no other request changes the object. No other request changes it
// until release is called. A goroutine must not have two claims, except those of
// claimBoth. In memory there are no claims, because mu is locked during a whole change.
func (s *store) claim(bucket, name string) (release func()) {
	if s.disk == nil {
		return func() {}
	}
	o := objectName{bucket, name}
	s.claims.buckets.RLock()
	s.claims.take(o)
	return func() {
		s.claims.release(o)
		s.claims.buckets.RUnlock()
	}
}

// claimBoth is claim for two objects of a bucket with different names.
func (s *store) claimBoth(bucket, one, other string) (release func()) {
	if s.disk == nil {
		return func() {}
	}
	both := []objectName{{bucket, one}, {bucket, other}}
	slices.SortFunc(both, func(a, b objectName) int { return strings.Compare(a.name, b.name) }) // two requests must not wait for each other
	s.claims.buckets.RLock()
	for _, o := range both {
		s.claims.take(o)
	}
	return func() {
		for _, o := range both {
			s.claims.release(o)
		}
		s.claims.buckets.RUnlock()
	}
}

// claimBuckets waits until no request changes an object, and lets none do so until release
// is called. A change of a bucket that affects its objects needs it.
func (s *store) claimBuckets() (release func()) {
	if s.disk == nil {
		return func() {}
	}
	s.claims.buckets.Lock()
	return s.claims.buckets.Unlock
}
