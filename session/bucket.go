package session

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bucket is the part of a bucket's configuration that concerns its objects.
// https://cloud.google.com/storage/docs/json_api/v1/buckets#resource
type Bucket struct {
	StorageClass          string        // default of new objects
	Versioning            bool          // a replaced or deleted object is kept as a noncurrent version
	SoftDelete            time.Duration // how long a replaced or deleted object is kept; 0 if it is not
	Retention             time.Duration // how long a new object cannot be replaced or deleted; 0 if there is no limit
	DefaultEventBasedHold bool          // new objects cannot be replaced or deleted until their hold is released
}

// bucketFields are the fields that Bucket requests.
const bucketFields = "storageClass,versioning,softDeletePolicy,retentionPolicy,defaultEventBasedHold"

// Bucket reads the configuration of a bucket. It needs the permission
// storage.buckets.get. The Bucket is nil if the reply has none; the reply then has
// the reason. userProject is the project that is billed, for requester-pays buckets.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/get
func (c *Client) Bucket(ctx context.Context, name, userProject string) (*Bucket, Reply) {
	var b struct {
		StorageClass string `json:"storageClass"`
		Versioning   struct {
			Enabled bool `json:"enabled"`
		} `json:"versioning"`
		SoftDelete struct {
			Seconds decimal `json:"retentionDurationSeconds"`
		} `json:"softDeletePolicy"`
		Retention struct {
			Seconds decimal `json:"retentionPeriod"`
		} `json:"retentionPolicy"`
		Hold bool `json:"defaultEventBasedHold"`
	}
	r, ok := c.ofBucket(ctx, OpBucket, name, userProject, url.Values{"fields": {bucketFields}}, &b)
	if !ok {
		return nil, r
	}
	return &Bucket{
		StorageClass:          b.StorageClass,
		Versioning:            b.Versioning.Enabled,
		SoftDelete:            time.Duration(b.SoftDelete.Seconds) * time.Second,
		Retention:             time.Duration(b.Retention.Seconds) * time.Second,
		DefaultEventBasedHold: b.Hold,
	}, r
}

// Notification makes a bucket publish messages about changes of its objects.
// https://cloud.google.com/storage/docs/pubsub-notifications
type Notification struct {
	EventTypes       []string `json:"event_types"`        // such as OBJECT_FINALIZE; empty means all
	ObjectNamePrefix string   `json:"object_name_prefix"` // prefix of the names of these objects; "" for all
}

// Reports returns whether the creation or the deletion of an object causes a message.
func (n Notification) Reports(object string) bool {
	return strings.HasPrefix(object, n.ObjectNamePrefix) &&
		(len(n.EventTypes) == 0 || slices.ContainsFunc(n.EventTypes, func(t string) bool { return t != "OBJECT_METADATA_UPDATE" }))
}

// Notifications lists the notifications of a bucket. It needs the permission
// storage.buckets.get. ok is false if the reply does not have them.
// https://cloud.google.com/storage/docs/json_api/v1/notifications/list
func (c *Client) Notifications(ctx context.Context, bucket, userProject string) (_ []Notification, ok bool, _ Reply) {
	var list struct {
		Items []Notification `json:"items"`
	}
	r, ok := c.ofBucket(ctx, OpNotifications, bucket, userProject, url.Values{"fields": {"items(event_types,object_name_prefix)"}}, &list, "notificationConfigs")
	return list.Items, ok, r
}

// Permissions returns which of the permissions the caller has for a bucket and its
// objects. No permission is necessary to ask. ok is false if the reply does not have
// them. https://cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions
func (c *Client) Permissions(ctx context.Context, bucket, userProject string, permissions ...string) (_ []string, ok bool, _ Reply) {
	var has struct {
		Permissions []string `json:"permissions"`
	}
	r, ok := c.ofBucket(ctx, OpPermissions, bucket, userProject, url.Values{"permissions": permissions}, &has, "iam", "testPermissions")
	return has.Permissions, ok, r
}

// ofBucket reads the resource at path below a bucket into v. ok is false if the reply
// does not have it.
func (c *Client) ofBucket(ctx context.Context, op Op, name, userProject string, q url.Values, v any, path ...string) (_ Reply, ok bool) {
	if userProject != "" {
		q.Set("userProject", userProject)
	}
	req, err := c.request("GET", c.url(q, append([]string{"storage", "v1", "b", url.PathEscape(name)}, path...)...), nil, 0)
	if err != nil {
		return unsent(op, err), false
	}
	r := c.exchange(ctx, op, URI{}, req)
	if r.content != nil {
		if err := json.Unmarshal(*r.content, v); err != nil {
			r.Status, r.Err = 0, err
		}
		ok, r.content = r.Err == nil, nil
	}
	if cause := context.Cause(ctx); r.Err != nil && cause != nil {
		r.Status, r.Err = 0, cause
	}
	return r, ok
}
