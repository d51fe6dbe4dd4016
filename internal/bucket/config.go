package bucket

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gcsup/session"
)

// Config is the part of a bucket's configuration that concerns its objects.
// https://cloud.google.com/storage/docs/json_api/v1/buckets#resource
type Config struct {
	StorageClass          string        // default of new objects
	Versioning            bool          // a replaced or deleted object is kept as a noncurrent version
	SoftDelete            time.Duration // how long a replaced or deleted object is kept; 0 if it is not
	Retention             time.Duration // how long a new object cannot be replaced or deleted; 0 if there is no limit
	DefaultEventBasedHold bool          // new objects cannot be replaced or deleted until their hold is released
	Hierarchical          bool          // the bucket has folders, which exist while they are empty, too
}

// configFields are the fields that ReadConfig requests.
const configFields = "storageClass,versioning,softDeletePolicy,retentionPolicy,defaultEventBasedHold,hierarchicalNamespace"

// ReadConfig reads the configuration of a bucket. It needs the permission
// storage.buckets.get. The Config is nil if the reply has none; the reply then has
// the reason. userProject is the project that is billed, for requester-pays buckets.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/get
func ReadConfig(ctx context.Context, client *session.Client, name, userProject string) (*Config, session.Reply) {
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
		Hold      bool      `json:"defaultEventBasedHold"`
		Namespace namespace `json:"hierarchicalNamespace"`
	}
	q := url.Values{"fields": {configFields}, "userProject": {userProject}}
	r := get(ctx, client, OpConfig, q, []string{"b", name}, &b)
	if r.Status != http.StatusOK || r.Err != nil {
		return nil, r
	}
	return &Config{
		StorageClass:          b.StorageClass,
		Versioning:            b.Versioning.Enabled,
		SoftDelete:            time.Duration(b.SoftDelete.Seconds) * time.Second,
		Retention:             time.Duration(b.Retention.Seconds) * time.Second,
		DefaultEventBasedHold: b.Hold,
		Hierarchical:          b.Namespace.Enabled,
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
func Notifications(ctx context.Context, client *session.Client, bucket, userProject string) ([]Notification, session.Reply) {
	var list struct {
		Items []Notification `json:"items"`
	}
	q := url.Values{"fields": {"items(event_types,object_name_prefix)"}, "userProject": {userProject}}
	r := get(ctx, client, OpNotifications, q, []string{"b", bucket, "notificationConfigs"}, &list)
	return list.Items, r
}

// Permissions to create objects, to read and compose them, to delete and replace them, and to list the parts of a
// multipart upload.
const (
	PermissionCreate    = "storage.objects.create"
	PermissionGet       = "storage.objects.get"
	PermissionDelete    = "storage.objects.delete"
	PermissionListParts = "storage.multipartUploads.listParts"
)

// Permissions returns which of the permissions the caller has for a bucket and its
// objects. No permission is necessary to ask. The list is valid only if the status of
// the reply is 200. https://cloud.google.com/storage/docs/json_api/v1/buckets/testIamPermissions
func Permissions(ctx context.Context, client *session.Client, bucket, userProject string, permissions ...string) ([]string, session.Reply) {
	return test(ctx, client, userProject, permissions, "b", bucket, "iam", "testPermissions")
}

// test requests which of the permissions the caller has, at a path.
func test(ctx context.Context, client *session.Client, userProject string, permissions []string, path ...string) ([]string, session.Reply) {
	var has struct {
		Permissions []string `json:"permissions"`
	}
	q := url.Values{"permissions": permissions, "userProject": {userProject}}
	r := get(ctx, client, OpPermissions, q, path, &has)
	return has.Permissions, r
}
