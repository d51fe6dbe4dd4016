package gcs

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/upload"
)

var _ upload.Objects = (*Client)(nil)

// Stat requests the metadata of an object once, through the official library. It
// does not retry, because the uploader does. If the object is not encrypted with
// spec.EncryptionKey, Stat asks again without the key, and the object in the reply
// has no CRC32C.
func (c *Client) Stat(ctx context.Context, spec upload.Spec) session.Reply {
	r := c.stat(ctx, spec, spec.EncryptionKey)
	if r.OtherEncryption() {
		r = c.stat(ctx, spec, session.EncryptionKey{})
		if r.Object != nil {
			r.Object.CRC32C, r.Object.HasCRC32C = 0, false
		}
	}
	return r
}

// objects reads the metadata of objects, with the caller's headers.
type objects struct {
	*Client
	header http.Header
}

func (o *objects) Stat(ctx context.Context, spec upload.Spec) session.Reply {
	return o.Client.Stat(context.WithValue(ctx, headerKey{}, o.header), spec)
}

// WithHeader returns objects with other headers, see [upload.Objects].
func (o *objects) WithHeader(header http.Header) upload.Objects {
	return &objects{o.Client, header.Clone()}
}

// headerKey is the key of headers in the context of a request.
type headerKey struct{}

// headerOf returns the headers that ctx has for a request.
func headerOf(ctx context.Context) http.Header {
	header, _ := ctx.Value(headerKey{}).(http.Header)
	return header
}

// objectOf converts the attributes of an object.
func objectOf(a *storage.ObjectAttrs) *session.Object {
	o := &session.Object{
		Bucket: a.Bucket, Name: a.Name, Generation: a.Generation, Metageneration: a.Metageneration,
		Size: a.Size, CRC32C: a.CRC32C, HasCRC32C: true, MD5: a.MD5, Etag: a.Etag, MediaLink: a.MediaLink,
		ContentType: a.ContentType, ContentEncoding: a.ContentEncoding, ContentDisposition: a.ContentDisposition,
		ContentLanguage: a.ContentLanguage, CacheControl: a.CacheControl, StorageClass: a.StorageClass,
		Metadata: a.Metadata, CustomTime: a.CustomTime, ComponentCount: a.ComponentCount,
		Owner: a.Owner, KMSKeyName: a.KMSKeyName, CustomerKeySHA256: a.CustomerKeySHA256,
		TemporaryHold: a.TemporaryHold, EventBasedHold: a.EventBasedHold, RetentionExpirationTime: a.RetentionExpirationTime,
		Created: a.Created, Finalized: a.Finalized, Updated: a.Updated,
		Deleted: a.Deleted, SoftDeleteTime: a.SoftDeleteTime, HardDeleteTime: a.HardDeleteTime,
		FileModTime: session.ParseFileModTime(a.Metadata[session.FileModTimeKey]),
	}
	o.SetGzip(a.ContentEncoding, a.Metadata[session.UncompressedSizeKey])
	if a.Retention != nil {
		o.Retention = &session.Retention{Mode: a.Retention.Mode, RetainUntil: a.Retention.RetainUntil}
	}
	if a.Contexts != nil {
		o.Contexts = &session.ObjectContexts{Custom: map[string]session.ObjectCustomContextPayload{}}
		for key, c := range a.Contexts.Custom {
			o.Contexts.Custom[key] = session.ObjectCustomContextPayload{Value: c.Value, CreateTime: c.CreateTime, UpdateTime: c.UpdateTime}
		}
	}
	for _, r := range a.ACL {
		rule := session.ACLRule{Entity: string(r.Entity), EntityID: r.EntityID, Role: string(r.Role), Domain: r.Domain, Email: r.Email}
		if r.ProjectTeam != nil {
			rule.ProjectTeam = &session.ProjectTeam{ProjectNumber: r.ProjectTeam.ProjectNumber, Team: r.ProjectTeam.Team}
		}
		o.ACL = append(o.ACL, rule)
	}
	return o
}

// keyed returns o with the encryption key of its object.
func keyed(o *storage.ObjectHandle, key session.EncryptionKey) *storage.ObjectHandle {
	if !key.HasSecret() {
		return o
	}
	return o.Key(key.Bytes())
}

func (c *Client) stat(ctx context.Context, spec upload.Spec, key session.EncryptionKey) session.Reply {
	reply := session.Reply{Op: session.OpStat, Committed: -1}
	sc, err := c.Storage(ctx)
	if err != nil {
		reply.Err = err
		return reply
	}
	bucket := sc.Bucket(spec.Bucket)
	if spec.UserProject != "" {
		bucket = bucket.UserProject(spec.UserProject)
	}
	object := bucket.Object(spec.Object).Retryer(storage.WithPolicy(storage.RetryNever))
	attrs, err := keyed(object, key).Attrs(ctx)
	if err == nil {
		reply.Status = http.StatusOK
		reply.Object = objectOf(attrs)
		reply.Object.HasCRC32C = attrs.CustomerKeySHA256 == "" || key.HasSecret()
		return reply
	}
	apiErr, isAPI := errors.AsType[*googleapi.Error](err)
	switch {
	case isAPI:
		reply.Status, reply.Message = apiErr.Code, apiErr.Message
		reply.FromService = apiErr.Message != "" || apiErr.Header.Get("X-Guploader-Uploadid") != ""
		if len(apiErr.Errors) > 0 {
			reply.Reason = apiErr.Errors[0].Reason
		}
		reply.RetryAfter, _ = backoff.RetryAfter(apiErr.Header.Get("Retry-After"), time.Now())
		if apiErr.Code == http.StatusUnauthorized && c.anonymous != "" {
			reply.Err = &session.AnonymousError{Reason: c.anonymous}
		}
	case errors.Is(err, storage.ErrObjectNotExist), errors.Is(err, storage.ErrBucketNotExist):
		reply.Status, reply.FromService = http.StatusNotFound, true
	default:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		reply.Err = err
	}
	return reply
}
