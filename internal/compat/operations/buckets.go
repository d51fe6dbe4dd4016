package operations

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
)

// status returns the HTTP status of an error of the library, or 0.
func status(err error) int {
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		return e.Code
	}
	return 0
}

func createBucket(ctx context.Context, p place) error {
	bucket := p.client.Bucket(p.bucket.BucketName() + "-other")
	if err := bucket.Create(ctx, "p", &storage.BucketAttrs{Location: "EU", StorageClass: "NEARLINE", VersioningEnabled: true, Labels: map[string]string{"k": "v"}}); err != nil {
		return err
	}
	attrs, err := bucket.Attrs(ctx)
	if err != nil {
		return err
	}
	if attrs.Location != "EU" || attrs.StorageClass != "NEARLINE" || !attrs.VersioningEnabled || attrs.Labels["k"] != "v" {
		return fmt.Errorf("location %q, class %q, versioning %t, labels %v; want EU, NEARLINE, true, k=v", attrs.Location, attrs.StorageClass, attrs.VersioningEnabled, attrs.Labels)
	}
	if err := bucket.Create(ctx, "p", nil); status(err) != http.StatusConflict {
		return fmt.Errorf("create it again: %v, want status 409", err)
	}
	return nil
}

func bucketAttrs(ctx context.Context, p place) error {
	attrs, err := p.bucket.Attrs(ctx)
	if err != nil {
		return err
	}
	if attrs.Name != p.bucket.BucketName() || attrs.Created.IsZero() || attrs.MetaGeneration != 1 {
		return fmt.Errorf("name %q, created %v, metageneration %d; want %q, a time, 1", attrs.Name, attrs.Created, attrs.MetaGeneration, p.bucket.BucketName())
	}
	if _, err := p.client.Bucket(p.bucket.BucketName() + "-absent").Attrs(ctx); !errors.Is(err, storage.ErrBucketNotExist) {
		return fmt.Errorf("those of an absent bucket: %v, want ErrBucketNotExist", err)
	}
	return nil
}

func updateBucket(ctx context.Context, p place) error {
	rule := storage.LifecycleRule{Action: storage.LifecycleAction{Type: storage.DeleteAction}, Condition: storage.LifecycleCondition{AgeInDays: 30}}
	change := storage.BucketAttrsToUpdate{VersioningEnabled: true, Lifecycle: &storage.Lifecycle{Rules: []storage.LifecycleRule{rule}}}
	change.SetLabel("k", "v")
	if _, err := p.bucket.If(storage.BucketConditions{MetagenerationMatch: 1}).Update(ctx, change); err != nil {
		return err
	}
	attrs, err := p.bucket.Attrs(ctx)
	if err != nil {
		return err
	}
	if !attrs.VersioningEnabled || attrs.Labels["k"] != "v" || len(attrs.Lifecycle.Rules) != 1 || attrs.Lifecycle.Rules[0].Condition.AgeInDays != 30 {
		return fmt.Errorf("versioning %t, labels %v, rules %v; want what was set", attrs.VersioningEnabled, attrs.Labels, attrs.Lifecycle.Rules)
	}
	if _, err := p.bucket.If(storage.BucketConditions{MetagenerationMatch: 1}).Update(ctx, change); status(err) != http.StatusPreconditionFailed {
		return fmt.Errorf("update of an earlier metageneration: %v, want status 412", err)
	}
	return nil
}

func listBuckets(ctx context.Context, p place) error {
	it := p.client.Buckets(ctx, "p")
	it.Prefix = p.bucket.BucketName()
	attrs, err := it.Next()
	if err != nil {
		return err
	}
	if attrs.Name != p.bucket.BucketName() {
		return fmt.Errorf("found %q, want %q", attrs.Name, p.bucket.BucketName())
	}
	if attrs, err := it.Next(); !errors.Is(err, iterator.Done) {
		return fmt.Errorf("found more: %v, %v", attrs, err)
	}
	return nil
}

func deleteBucket(ctx context.Context, p place) error {
	if _, err := write(ctx, p.bucket.Object("a"), "x", nil); err != nil {
		return err
	}
	if err := p.bucket.Delete(ctx); status(err) != http.StatusConflict {
		return fmt.Errorf("delete it with an object: %v, want status 409", err)
	}
	if err := p.bucket.Object("a").Delete(ctx); err != nil {
		return err
	}
	if err := p.bucket.Delete(ctx); err != nil {
		return err
	}
	if _, err := p.bucket.Attrs(ctx); !errors.Is(err, storage.ErrBucketNotExist) {
		return fmt.Errorf("its attributes afterwards: %v, want ErrBucketNotExist", err)
	}
	return nil
}

func lockRetention(ctx context.Context, p place) error {
	attrs, err := p.bucket.Update(ctx, storage.BucketAttrsToUpdate{RetentionPolicy: &storage.RetentionPolicy{RetentionPeriod: time.Hour}})
	if err != nil {
		return err
	}
	if err := p.bucket.If(storage.BucketConditions{MetagenerationMatch: attrs.MetaGeneration}).LockRetentionPolicy(ctx); err != nil {
		return err
	}
	if attrs, err = p.bucket.Attrs(ctx); err != nil {
		return err
	}
	if attrs.RetentionPolicy == nil || !attrs.RetentionPolicy.IsLocked || attrs.RetentionPolicy.RetentionPeriod != time.Hour {
		return fmt.Errorf("policy %+v, want a locked one of an hour", attrs.RetentionPolicy)
	}
	if _, err := write(ctx, p.bucket.Object("a"), "x", nil); err != nil {
		return err
	}
	if err := p.bucket.Object("a").Delete(ctx); status(err) != http.StatusForbidden {
		return fmt.Errorf("delete a new object: %v, want status 403", err)
	}
	return nil
}

func notification(ctx context.Context, p place) error {
	made, err := p.bucket.AddNotification(ctx, &storage.Notification{TopicProjectID: "p", TopicID: "t", PayloadFormat: storage.JSONPayload})
	if err != nil {
		return err
	}
	all, err := p.bucket.Notifications(ctx)
	if err != nil {
		return err
	}
	if len(all) != 1 || all[made.ID] == nil || all[made.ID].TopicID != "t" {
		return fmt.Errorf("notifications %v, want %q with topic t", all, made.ID)
	}
	if err := p.bucket.DeleteNotification(ctx, made.ID); err != nil {
		return err
	}
	if all, err = p.bucket.Notifications(ctx); err != nil || len(all) != 0 {
		return fmt.Errorf("notifications %v, %v; want none", all, err)
	}
	return nil
}

func policy(ctx context.Context, p place) error {
	is, err := p.bucket.IAM().Policy(ctx)
	if err != nil {
		return err
	}
	is.Add("allUsers", "roles/storage.objectViewer")
	if err := p.bucket.IAM().SetPolicy(ctx, is); err != nil {
		return err
	}
	if is, err = p.bucket.IAM().Policy(ctx); err != nil {
		return err
	}
	if !is.HasRole("allUsers", "roles/storage.objectViewer") {
		return fmt.Errorf("policy %v does not have the role", is.InternalProto)
	}
	granted, err := p.bucket.IAM().TestPermissions(ctx, []string{"storage.objects.get"})
	if err != nil || !slices.Equal(granted, []string{"storage.objects.get"}) {
		return fmt.Errorf("permissions %v, %v; want storage.objects.get", granted, err)
	}
	return nil
}

func accessLists(ctx context.Context, p place) error {
	if _, err := write(ctx, p.bucket.Object("a"), "x", nil); err != nil {
		return err
	}
	for _, list := range []struct {
		of string
		*storage.ACLHandle
	}{{"the object", p.bucket.Object("a").ACL()}, {"the bucket", p.bucket.ACL()}, {"new objects", p.bucket.DefaultObjectACL()}} {
		if err := list.Set(ctx, storage.AllUsers, storage.RoleReader); err != nil {
			return fmt.Errorf("list of %s: set: %w", list.of, err)
		}
		for _, want := range []bool{true, false} {
			rules, err := list.List(ctx)
			if err != nil {
				return fmt.Errorf("list of %s: %w", list.of, err)
			}
			has := slices.ContainsFunc(rules, func(r storage.ACLRule) bool { return r.Entity == storage.AllUsers && r.Role == storage.RoleReader })
			if has != want {
				return fmt.Errorf("list of %s has allUsers: %t, want %t", list.of, has, want)
			}
			if !want {
				break
			}
			if err := list.Delete(ctx, storage.AllUsers); err != nil {
				return fmt.Errorf("list of %s: delete: %w", list.of, err)
			}
		}
	}
	return nil
}
