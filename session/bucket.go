package session

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"time"
)

// Bucket is what the configuration of a bucket says about its objects.
// https://cloud.google.com/storage/docs/json_api/v1/buckets#resource
type Bucket struct {
	Versioning            bool          // a replaced or deleted object is kept as a noncurrent version
	SoftDelete            time.Duration // how long a replaced or deleted object is kept; 0 if it is not
	Retention             time.Duration // how long an object can be neither replaced nor deleted; 0 if it can be at once
	DefaultEventBasedHold bool          // new objects cannot be replaced or deleted until their hold is released
}

// bucketFields are the fields that Bucket requests.
const bucketFields = "versioning,softDeletePolicy,retentionPolicy,defaultEventBasedHold"

// Bucket reads the configuration of a bucket, for which the permission
// storage.buckets.get is necessary. The Bucket is nil if the reply has none; the reply
// shows why. userProject is the project that is billed, for requester-pays buckets.
// https://cloud.google.com/storage/docs/json_api/v1/buckets/get
func (c *Client) Bucket(ctx context.Context, name, userProject string) (*Bucket, Reply) {
	q := url.Values{"fields": {bucketFields}}
	if userProject != "" {
		q.Set("userProject", userProject)
	}
	req, err := c.request("GET", c.url(q, "storage", "v1", "b", url.PathEscape(name)), nil, 0)
	if err != nil {
		return nil, unsent(OpBucket, err)
	}
	r := c.exchange(ctx, OpBucket, URI{}, req)
	bucket := r.bucket
	r.bucket = nil
	if cause := context.Cause(ctx); r.Err != nil && cause != nil {
		r.Status, r.Err = 0, cause
	}
	return bucket, r
}

// readBucket reads the configuration of a bucket from the body of a reply.
func readBucket(body io.Reader) (*Bucket, error) {
	text, err := io.ReadAll(io.LimitReader(body, objectLimit))
	if err != nil {
		return nil, err
	}
	var b struct {
		Versioning struct {
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
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, err
	}
	return &Bucket{
		Versioning:            b.Versioning.Enabled,
		SoftDelete:            time.Duration(b.SoftDelete.Seconds) * time.Second,
		Retention:             time.Duration(b.Retention.Seconds) * time.Second,
		DefaultEventBasedHold: b.Hold,
	}, nil
}
