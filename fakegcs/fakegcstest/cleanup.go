package fakegcstest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// This file creates the bucket of a case, and deletes everything that the case made.

// makeBucket creates a bucket for this case only.
func (v *conversation) makeBucket(ctx context.Context, config string) error {
	// Many organizations require uniform access. No case is about access.
	fields := map[string]json.RawMessage{
		"softDeletePolicy": json.RawMessage(`{"retentionDurationSeconds":"0"}`),
		"iamConfiguration": json.RawMessage(`{"uniformBucketLevelAccess":{"enabled":true}}`),
	}
	if err := json.Unmarshal([]byte(config), &fields); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	v.Bucket, v.ownBucket = bucketName(v.Bucket), true
	fields["name"] = json.RawMessage(`"` + v.Bucket + `"`)
	body, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	step := Step{
		Method: "POST", Path: "/storage/v1/b?project={project}", Header: []string{"Content-Type: application/json"}, Body: string(body),
		Status: http.StatusOK, Match: []string{`"kind":\s*"storage#bucket"`, `"name":\s*"{bucket}"`},
	}
	resp, text, err := v.send(ctx, step)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		v.ownBucket = false
		return fmt.Errorf("%w: no bucket can be created in project %s: %d %.300s", ErrNotChecked, v.Project, resp.StatusCode, text)
	}
	return v.compare(step, resp, text)
}

// bucketName makes a new name from that of an existing bucket. It replaces the dots
// of a domain name, because the caller may not own the domain. A name without dots
// has at most 63 bytes, https://cloud.google.com/storage/docs/buckets#naming.
func bucketName(like string) string {
	like = strings.ReplaceAll(like, ".", "-")
	return like[:min(len(like), 50)] + "-" + strings.ToLower(rand.Text()[:12])
}

// cleanUp deletes everything that the case made. It continues after an error.
func (v *conversation) cleanUp(ctx context.Context) error {
	var errs []error
	for _, uri := range v.sessions {
		errs = append(errs, v.cancel(ctx, uri))
	}
	if v.multipart {
		errs = append(errs, v.abortUploads(ctx))
	}
	errs = append(errs, v.deleteObjects(ctx))
	if v.ownBucket {
		errs = append(errs, v.remove(ctx, bucketPath))
	}
	return errors.Join(errs...)
}

// cancel cancels an upload session. It accepts any status below 500, because the
// status depends on how the upload ended. A session that stays costs nothing and expires after a week.
func (v *conversation) cancel(ctx context.Context, uri string) error {
	resp, _, err := v.send(ctx, Step{Method: "DELETE", Path: uri})
	if err == nil && resp.StatusCode >= 500 {
		err = fmt.Errorf("cancel an upload: %s", resp.Status)
	}
	return err
}

// remove deletes a resource, which need not exist. In a bucket made for the case, a
// removed retention policy can forbid it for some seconds.
func (v *conversation) remove(ctx context.Context, path string) error {
	deadline := time.Now().Add(v.Patience)
	for {
		resp, body, err := v.send(ctx, Step{Method: "DELETE", Path: path})
		switch {
		case err != nil:
			return err
		case resp.StatusCode/100 == 2 || resp.StatusCode == http.StatusNotFound:
			return nil
		case !v.ownBucket || resp.StatusCode != http.StatusForbidden || time.Now().After(deadline):
			return fmt.Errorf("delete %s: %s %.200s", path, resp.Status, body)
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// change patches a resource, which need not exist.
func (v *conversation) change(ctx context.Context, path, patch string) error {
	resp, body, err := v.send(ctx, Step{Method: "PATCH", Path: path, Header: []string{"Content-Type: application/json"}, Body: patch})
	switch {
	case err != nil:
		return err
	case resp.StatusCode/100 == 2 || resp.StatusCode == http.StatusNotFound:
		return nil
	}
	return fmt.Errorf("patch %s: %s %.200s", path, resp.Status, body)
}

// deleteObjects deletes all generations of all objects of the case.
func (v *conversation) deleteObjects(ctx context.Context) error {
	var errs []error
	lifted := false
	for token := ""; ; {
		path := "/storage/v1/b/{bucket}/o?versions=true&prefix=" + escape(v.folder)
		if token != "" {
			path += "&pageToken=" + escape(token)
		}
		resp, body, err := v.send(ctx, Step{Method: "GET", Path: path})
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if resp.StatusCode == http.StatusNotFound { // the bucket
			return errors.Join(errs...)
		}
		var page struct {
			NextPageToken string
			Items         []struct {
				Name, Generation, RetentionExpirationTime string
				TemporaryHold, EventBasedHold             bool
			}
		}
		if resp.StatusCode != http.StatusOK {
			return errors.Join(append(errs, fmt.Errorf("list objects: %s %.200s", resp.Status, body))...)
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			return errors.Join(append(errs, fmt.Errorf("list objects: %w", err))...)
		}
		for _, o := range page.Items {
			// An event-based hold hides that there is a policy.
			if v.ownBucket && !lifted && (o.RetentionExpirationTime != "" || o.EventBasedHold) {
				errs, lifted = append(errs, v.change(ctx, bucketPath, `{"retentionPolicy":null}`)), true
			}
			path := "/storage/v1/b/{bucket}/o/" + escape(o.Name) + "?generation=" + escape(o.Generation)
			if o.TemporaryHold || o.EventBasedHold {
				errs = append(errs, v.change(ctx, path, `{"temporaryHold":false,"eventBasedHold":false}`))
			}
			errs = append(errs, v.remove(ctx, path))
		}
		if token = page.NextPageToken; token == "" {
			return errors.Join(errs...)
		}
	}
}

// abortUploads aborts the multipart uploads of the case.
func (v *conversation) abortUploads(ctx context.Context) error {
	resp, body, err := v.send(ctx, Step{Method: "GET", Path: "/{bucket}?uploads&prefix=" + escape(v.folder)})
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil
	}
	var list struct {
		Upload []struct {
			Key      string
			UploadID string `xml:"UploadId"`
		}
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("list multipart uploads: %s %.200s", resp.Status, body)
	}
	if err := xml.Unmarshal([]byte(body), &list); err != nil {
		return fmt.Errorf("list multipart uploads: %w", err)
	}
	var errs []error
	for _, u := range list.Upload {
		errs = append(errs, v.remove(ctx, "/{bucket}/"+escape(u.Key)+"?uploadId="+escape(u.UploadID)))
	}
	return errors.Join(errs...)
}
