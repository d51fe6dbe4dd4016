package parts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// bucketFacts describes how a bucket treats temporary objects. It is read once for
// all files of an Uploader.
type bucketFacts struct {
	asking chan struct{} // holds a value while a file asks

	known    bool                  // the service was asked
	stopped  bool                  // it was asked until it did not permit a request
	missing  bool                  // the bucket does not exist
	config   *bucket.Config        // nil if it may not be read
	listed   bool                  // notices is known
	notices  []bucket.Notification // that the bucket sends
	asked    bool                  // lacks is known
	lacks    string                // a permission that temporary objects need and the caller does not have; "" if there is none
	unlisted bool                  // the caller may create objects, and not list the parts of multipart uploads
	layout   *bool                 // whether the bucket has folders; nil until it is asked for without config
	folders  map[string]bool       // managed folders that were asked for: whether the caller has all permissions
	warned   map[string]bool       // warnings that were posted
}

// Buckets has the facts of all buckets, by user project and name.
type Buckets struct{ facts sync.Map }

// of returns the facts of a bucket, which may not be known yet.
func (t *Buckets) of(bucket, userProject string) *bucketFacts {
	f, _ := t.facts.LoadOrStore(userProject+"/"+bucket, &bucketFacts{asking: make(chan struct{}, 1), folders: map[string]bool{}, warned: map[string]bool{}})
	return f.(*bucketFacts)
}

// needed are the permissions that temporary objects need. That an object at the destination could be read, or was not
// found, does not show that others can be composed: roles/storage.legacyBucketWriter cannot read any.
// https://cloud.google.com/storage/docs/json_api/v1/objects/compose
var needed = []string{bucket.PermissionDelete, bucket.PermissionCreate, bucket.PermissionGet}

// lacking returns the first of the needed permissions that the caller does not have, or "".
func lacking(granted []string) string {
	for _, p := range needed {
		if !slices.Contains(granted, p) {
			return p
		}
	}
	return ""
}

// inquire makes a request about a bucket. A refusal is no answer: the error is then nil, and refused is not.
func inquire(ctx context.Context, x *engine.Requester, op session.Op, do func(context.Context, *session.Client) session.Reply) (refused *session.Error, err error) {
	_, err = x.Ask(ctx, decide.Request{Optional: true}, func(ctx context.Context) session.Reply { return x.Plain(ctx, op, do) })
	if engine.Refusal(err) {
		refused, _ = errors.AsType[*session.Error](err)
		return refused, nil
	}
	return nil, err
}

// ask asks the service if the facts are not known, by at most three requests. If that fails, or
// there is no bucket yet, the next file asks again. If needAll is set, it stops after the first
// request that the service does not permit.
func (f *bucketFacts) ask(ctx context.Context, x *engine.Requester, needAll bool) (err error) {
	if f.known || f.stopped && needAll {
		return nil
	}
	f.missing = false
	strange := false // a stranger refused a request: a proxy may be in the way for a while
	defer func() { f.known = err == nil && !f.missing && !strange && !f.stopped }()
	// answered makes a request, and reports whether the service answered.
	answered := func(op session.Op, do func(context.Context, *session.Client) session.Reply) (ok bool, err error) {
		refused, err := inquire(ctx, x, op, do)
		if refused != nil {
			strange = strange || !refused.FromService
			f.missing = f.missing || op == bucket.OpConfig && refused.FromService && errors.Is(refused, session.ErrNotFound)
		}
		return refused == nil && err == nil, err
	}
	_, err = answered(bucket.OpConfig, func(ctx context.Context, c *session.Client) (r session.Reply) {
		f.config, r = bucket.ReadConfig(ctx, c, x.Spec.Bucket, x.Spec.UserProject)
		return r
	})
	f.stopped = err == nil && needAll && f.config == nil && !f.missing
	if err != nil || f.missing || f.stopped {
		return err
	}
	f.asked, err = answered(bucket.OpPermissions, f.permissions(x))
	f.stopped = err == nil && needAll && !f.asked
	if err != nil || f.stopped {
		return err
	}
	if f.config == nil {
		return nil // reading the notifications needs the same permission
	}
	f.listed, err = answered(bucket.OpNotifications, func(ctx context.Context, c *session.Client) (r session.Reply) {
		f.notices, r = bucket.Notifications(ctx, c, x.Spec.Bucket, x.Spec.UserProject)
		return r
	})
	return err
}

// permissions returns the request for the permissions, which sets lacks and unlisted.
func (f *bucketFacts) permissions(x *engine.Requester) func(context.Context, *session.Client) session.Reply {
	return func(ctx context.Context, c *session.Client) session.Reply {
		may, r := bucket.Permissions(ctx, c, x.Spec.Bucket, x.Spec.UserProject, append([]string{bucket.PermissionListParts}, needed...)...)
		f.lacks = lacking(may)
		f.unlisted = slices.Contains(may, bucket.PermissionCreate) && !slices.Contains(may, bucket.PermissionListParts)
		return r
	}
}

// unlistable returns the reason why a stream is not sent in parts, or "". Before its parts become the object, they are
// listed: without the permission, the stream would fail after all was sent. A caller who may not create objects either
// has both permissions on a folder, or for some names.
func (f *bucketFacts) unlistable() string {
	if f.asked && f.unlisted {
		return "the permission " + bucket.PermissionListParts + " is missing, and the parts could not be checked before they become the object"
	}
	return ""
}

// place returns the folder for the temporary objects of an object, and a permission that the caller does not have in
// it. The folder is "" for the bucket itself. If the bucket does not grant the permissions, a managed folder of the
// object may: the outermost one that does is the place. Each folder is asked for once.
func (f *bucketFacts) place(ctx context.Context, x *engine.Requester) (folder, lacks string, err error) {
	if !f.asked || f.lacks == "" {
		return "", "", nil
	}
	for _, folder := range bucket.ManageableFolders(x.Spec.Object) {
		grants, known := f.folders[folder]
		if !known {
			var may []string
			refused, err := inquire(ctx, x, bucket.OpPermissions, func(ctx context.Context, c *session.Client) (r session.Reply) {
				may, r = bucket.FolderPermissions(ctx, c, x.Spec.Bucket, folder, x.Spec.UserProject, needed...)
				return r
			})
			if err != nil {
				return "", "", err
			}
			grants = refused == nil && lacking(may) == ""
			if refused == nil || refused.FromService {
				f.folders[folder] = grants
			}
		}
		if grants {
			return folder, "", nil
		}
	}
	return "", f.lacks, nil
}

// hierarchical reports whether the bucket has folders, which would stay after the temporary objects. If its settings
// may not be read, the service is asked for the layout.
func (f *bucketFacts) hierarchical(ctx context.Context, x *engine.Requester) (bool, error) {
	switch {
	case f.config != nil:
		return f.config.Hierarchical, nil
	case f.missing:
		return false, nil
	}
	if f.layout == nil {
		var is bool
		refused, err := inquire(ctx, x, bucket.OpConfig, func(ctx context.Context, c *session.Client) (r session.Reply) {
			is, r = bucket.Hierarchical(ctx, c, x.Spec.Bucket, x.Spec.Object, x.Spec.UserProject)
			return r
		})
		if err != nil || refused != nil && !refused.FromService {
			return false, err
		}
		f.layout = new(is && refused == nil)
	}
	return *f.layout, nil
}

// forbidden returns the reason why temporary objects cannot be made or deleted, or "". lacks is a permission
// that the caller does not have.
func (f *bucketFacts) forbidden(lacks string) string {
	switch {
	case f.config != nil && f.config.Retention > 0:
		return "the bucket has a retention policy, and temporary objects could not be deleted"
	case f.config != nil && f.config.DefaultEventBasedHold:
		return "the bucket holds new objects, and temporary objects could not be deleted"
	case lacks == bucket.PermissionDelete:
		return "the permission " + lacks + " is missing, and temporary objects could not be deleted"
	case lacks == bucket.PermissionGet:
		return "the permission " + lacks + " is missing, and temporary objects could not be composed"
	case lacks != "":
		return "the permission " + lacks + " is missing, and temporary objects could not be made"
	}
	return ""
}

// unknown returns which of the facts cannot be read, or "".
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

// costs describes the costs of temporary objects besides their requests, or returns "".
// prefix is that of their names. class is the storage class of the object; "" is the default of the bucket.
func (f *bucketFacts) costs(prefix, class string) string {
	switch days := f.minimum(class); {
	case days > 0:
		return fmt.Sprintf("temporary objects of the storage class %s are billed for %d days if the upload does not finish", f.class(class), days)
	case slices.ContainsFunc(f.notices, func(n bucket.Notification) bool { return n.Reports(prefix) }):
		return "the bucket sends Pub/Sub notifications, and each temporary object causes some"
	}
	return ""
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
