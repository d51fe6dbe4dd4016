package parts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gcsup/session"
	"gcsup/session/bucket"
	"gcsup/upload/internal/engine"
)

// bucketFacts describes how a bucket treats temporary objects. It is read once for
// all files of an Uploader.
type bucketFacts struct {
	asking chan struct{} // holds a value while a file asks

	known    bool           // the service was asked
	stopped  bool           // it was asked until it did not permit a request
	missing  bool           // the bucket does not exist
	config   *bucket.Config // nil if it may not be read
	listed   bool           // notified is known
	notified bool           // temporary objects cause Pub/Sub messages
	asked    bool           // deletes is known
	deletes  bool           // the caller has session.PermissionDelete
	warned   map[error]bool // warnings that were posted
}

// Buckets has the facts of all buckets, by user project and name.
type Buckets struct{ facts sync.Map }

// of returns the facts of a bucket, which may not be known yet.
func (t *Buckets) of(bucket, userProject string) *bucketFacts {
	f, _ := t.facts.LoadOrStore(userProject+"/"+bucket, &bucketFacts{asking: make(chan struct{}, 1), warned: map[error]bool{}})
	return f.(*bucketFacts)
}

// ask asks the service if the facts are not known, by at most three requests. If that fails, or
// there is no bucket yet, the next file asks again. If needAll is set, it stops after the first
// request that the service does not permit. prefix is the prefix of the names of temporary objects.
func (f *bucketFacts) ask(ctx context.Context, x *engine.Exchanger, prefix string, needAll bool) (err error) {
	if f.known || f.stopped && needAll {
		return nil
	}
	f.missing = false
	strange := false // a stranger refused a request: a proxy may be in the way for a while
	defer func() { f.known = err == nil && !f.missing && !strange && !f.stopped }()
	// answered makes a request, and reports whether the service answered. A refusal is no answer.
	answered := func(op session.Op, do func(context.Context, *session.Client) session.Reply) (ok bool, err error) {
		_, err = x.Ask(ctx, session.Request{Optional: true}, func(ctx context.Context) session.Reply { return x.Plain(ctx, op, do) })
		if engine.Refusal(err) {
			e, _ := errors.AsType[*session.Error](err)
			strange = strange || !e.FromService
			f.missing = f.missing || op == session.OpBucket && e.FromService && errors.Is(err, session.ErrNotFound)
			return false, nil
		}
		return err == nil, err
	}
	_, err = answered(session.OpBucket, func(ctx context.Context, c *session.Client) (r session.Reply) {
		f.config, r = bucket.ReadConfig(ctx, c, x.Spec.Bucket, x.Spec.UserProject)
		return r
	})
	f.stopped = err == nil && needAll && f.config == nil && !f.missing
	if err != nil || f.missing || f.stopped {
		return err
	}
	var may []string
	f.asked, err = answered(session.OpPermissions, func(ctx context.Context, c *session.Client) (r session.Reply) {
		may, r = bucket.Permissions(ctx, c, x.Spec.Bucket, x.Spec.UserProject, session.PermissionDelete)
		return r
	})
	f.stopped = err == nil && needAll && !f.asked
	if err != nil || f.stopped {
		return err
	}
	f.deletes = slices.Contains(may, session.PermissionDelete)
	if f.config == nil {
		return nil // reading the notifications needs the same permission
	}
	var list []bucket.Notification
	f.listed, err = answered(session.OpNotifications, func(ctx context.Context, c *session.Client) (r session.Reply) {
		list, r = bucket.Notifications(ctx, c, x.Spec.Bucket, x.Spec.UserProject)
		return r
	})
	f.notified = slices.ContainsFunc(list, func(n bucket.Notification) bool { return n.Reports(prefix) })
	return err
}

// forbidden returns the reason why temporary objects cannot be deleted, or nil.
func (f *bucketFacts) forbidden() error {
	switch {
	case f.config != nil && f.config.Retention > 0:
		return Reason{Text: "the bucket has a retention policy, and temporary objects could not be deleted"}
	case f.config != nil && f.config.DefaultEventBasedHold:
		return Reason{Text: "the bucket holds new objects, and temporary objects could not be deleted"}
	case f.asked && !f.deletes:
		return Reason{Text: "the permission " + session.PermissionDelete + " is missing, and temporary objects could not be deleted"}
	}
	return nil
}

// unknown returns which of the facts cannot be read, or nil.
func (f *bucketFacts) unknown() error {
	switch {
	case f.missing:
		return Reason{Text: "the bucket is not found"}
	case f.config == nil:
		return Reason{Text: "the settings of the bucket cannot be read (storage.buckets.get)"}
	case !f.asked:
		return Reason{Text: "the permissions for the bucket cannot be read"}
	case !f.listed:
		return Reason{Text: "the notifications of the bucket cannot be read"}
	}
	return nil
}

// costs describes the costs of temporary objects besides their requests, or returns nil.
// class is the storage class of the object; "" is the default of the bucket.
func (f *bucketFacts) costs(class string) error {
	switch days := f.minimum(class); {
	case days > 0:
		return Reason{Text: fmt.Sprintf("temporary objects of the storage class %s are billed for %d days if the upload does not finish", f.class(class), days)}
	case f.notified:
		return Reason{Text: "the bucket sends Pub/Sub notifications, and each temporary object causes some"}
	}
	return nil
}

// class returns the storage class of an object of class, which may be "".
func (f *bucketFacts) class(class string) string {
	if f.config != nil {
		class = cmp.Or(class, f.config.StorageClass)
	}
	return class
}

// minimum returns the minimum storage duration of an object of class, in days.
func (f *bucketFacts) minimum(class string) int { return minimumDays[f.class(class)] }

// minimumDays has the minimum storage duration of a storage class, in days.
// https://cloud.google.com/storage/docs/storage-classes
var minimumDays = map[string]int{"NEARLINE": 30, "COLDLINE": 90, "ARCHIVE": 365}
