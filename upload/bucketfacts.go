package upload

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"gcsup/session"
)

// bucketFacts are what a bucket allows to do with temporary objects. They are asked once
// for all files of an Uploader.
type bucketFacts struct {
	asking chan struct{} // holds one while a file asks

	known    bool
	missing  bool            // the service does not find the bucket
	config   *session.Bucket // nil if it may not be read
	listed   bool            // whether notified is known
	notified bool            // a temporary object causes messages
	asked    bool            // whether deletes is known
	deletes  bool            // the caller may delete objects
	warned   map[string]bool
}

// permissionDelete is necessary to delete temporary objects.
const permissionDelete = "storage.objects.delete"

// facts returns the facts of a bucket, without asking.
func (s *partsShared) facts(bucket, userProject string) *bucketFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := userProject + "/" + bucket
	f := s.buckets[key]
	if f == nil {
		f = &bucketFacts{asking: make(chan struct{}, 1), warned: map[string]bool{}}
		if s.buckets == nil {
			s.buckets = map[string]*bucketFacts{}
		}
		s.buckets[key] = f
	}
	return f
}

// askBucket calls use with the facts of the bucket of the destination, which it asks for if
// they are not known. A request that fails is not remembered.
func (p *composer) askBucket(ctx context.Context, use func(*bucketFacts)) error {
	j := p.j
	f := j.u.parts.facts(j.spec.Bucket, j.spec.UserProject)
	select {
	case f.asking <- struct{}{}:
	case <-ctx.Done():
		return j.transfer.interrupted(ctx, nil)
	}
	defer func() { <-f.asking }()
	if !f.known {
		if err := f.ask(ctx, j.transfer, p.parts.Prefix, j.u.opts.Parallel.auto); err != nil {
			return j.transfer.stopped(ctx, err, nil)
		}
		f.known = !f.missing // it may be created
	}
	use(f)
	return nil
}

// ask makes the requests. If enough is set, it ends with the first one whose answer is not
// given.
func (f *bucketFacts) ask(ctx context.Context, t *transfer, prefix string, enough bool) error {
	repeat := func(exchange func(context.Context) session.Reply) error {
		_, err := t.retry.repeat(ctx, exchange)
		return err
	}
	if err := repeat(func(ctx context.Context) (r session.Reply) {
		f.config, r = t.wire.bucket(ctx)
		f.missing = r.Status == http.StatusNotFound && r.FromService
		return r
	}); err != nil || enough && f.config == nil {
		return err
	}
	var may []string
	if err := repeat(func(ctx context.Context) (r session.Reply) {
		may, f.asked, r = t.wire.permissions(ctx, permissionDelete)
		return r
	}); err != nil || enough && !f.asked {
		return err
	}
	f.deletes = slices.Contains(may, permissionDelete)
	if f.config == nil {
		return nil // the notifications need the same permission
	}
	var list []session.Notification
	err := repeat(func(ctx context.Context) (r session.Reply) {
		list, f.listed, r = t.wire.notifications(ctx)
		return r
	})
	f.notified = slices.ContainsFunc(list, func(n session.Notification) bool { return n.Reports(prefix) })
	return err
}

// forbidden returns why temporary objects cannot be deleted, or "".
func (f *bucketFacts) forbidden() string {
	switch {
	case f.config != nil && f.config.Retention > 0:
		return "the bucket has a retention policy, and temporary objects could not be deleted"
	case f.config != nil && f.config.DefaultEventBasedHold:
		return "the bucket holds new objects, and temporary objects could not be deleted"
	case f.asked && !f.deletes:
		return "the permission " + permissionDelete + " is missing, and temporary objects could not be deleted"
	}
	return ""
}

// unknown returns what the service does not tell, or "".
func (f *bucketFacts) unknown() string {
	switch {
	case f.missing:
		return "the bucket is not found"
	case f.config == nil:
		return "the settings of the bucket cannot be read (storage.buckets.get)"
	case !f.asked:
		return "the permissions for the bucket cannot be read"
	case !f.listed:
		return "the notifications of the bucket cannot be read"
	}
	return ""
}

// costs returns what temporary objects cost besides their requests, or "". class is that of
// the destination; "" is the one of the bucket.
func (f *bucketFacts) costs(class string) string {
	if f.config != nil {
		class = cmp.Or(class, f.config.StorageClass)
	}
	switch days := minimumDays[class]; {
	case days > 0:
		return fmt.Sprintf("temporary objects of the storage class %s are billed for %d days", class, days)
	case f.notified:
		return "the bucket sends Pub/Sub notifications, and each temporary object causes some"
	}
	return ""
}

// minimumDays are the storage classes that bill an object for at least so many days.
// https://cloud.google.com/storage/docs/storage-classes
var minimumDays = map[string]int{"NEARLINE": 30, "COLDLINE": 90, "ARCHIVE": 365}
