package session

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
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
	r := c.ofBucket(ctx, OpBucket, name, userProject, url.Values{"fields": {bucketFields}}, &b)
	if !r.success() {
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
// storage.buckets.get. The list is valid only if the status of the reply is 200.
// https://cloud.google.com/storage/docs/json_api/v1/notifications/list
func (c *Client) Notifications(ctx context.Context, bucket, userProject string) ([]Notification, Reply) {
	var list struct {
		Items []Notification `json:"items"`
	}
	r := c.ofBucket(ctx, OpNotifications, bucket, userProject, url.Values{"fields": {"items(event_types,object_name_prefix)"}}, &list, "notificationConfigs")
	return list.Items, r
}

// Permissions returns which of the permissions the caller has for a bucket and its
// objects. No permission is necessary to ask. The list is valid only if the status of
// the reply is 200. https://cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions
func (c *Client) Permissions(ctx context.Context, bucket, userProject string, permissions ...string) ([]string, Reply) {
	var has struct {
		Permissions []string `json:"permissions"`
	}
	r := c.ofBucket(ctx, OpPermissions, bucket, userProject, url.Values{"permissions": permissions}, &has, "iam", "testPermissions")
	return has.Permissions, r
}

// ofBucket reads the resource at path below a bucket into v.
func (c *Client) ofBucket(ctx context.Context, op Op, name, userProject string, q url.Values, v any, path ...string) Reply {
	if userProject != "" {
		q.Set("userProject", userProject)
	}
	req, err := c.request("GET", c.url(q, append([]string{"storage", "v1", "b", url.PathEscape(name)}, path...)...), nil, 0)
	if err != nil {
		return unsent(op, err)
	}
	return c.roundTrip(ctx, op, URI{}, req, reading(func(resp *http.Response) (complete bool, err error) {
		body, err := io.ReadAll(io.LimitReader(resp.Body, objectLimit))
		if err == nil {
			err = json.Unmarshal(body, v)
		}
		return false, err
	}))
}
