package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/fakegcstest"
)

// bucket is the user's bucket. Only objects below the target's prefix are changed.
type bucket struct{ fakegcstest.Target }

// describe returns the properties of the bucket on which answers may depend. It
// returns an error if the bucket cannot be used.
func (b *bucket) describe(ctx context.Context) (string, error) {
	var v struct {
		Location, StorageClass string
		Versioning             struct{ Enabled bool }
		RetentionPolicy        struct {
			RetentionPeriod int64 `json:",string"`
		}
		SoftDeletePolicy struct {
			RetentionDurationSeconds int64 `json:",string"`
		}
	}
	status, body, err := b.do(ctx, http.MethodGet, "", "")
	switch {
	case err != nil:
		return "", err
	case status == http.StatusForbidden: // permissions for objects suffice
		return "bucket of unknown kind", nil
	case status != http.StatusOK:
		return "", fmt.Errorf("bucket gs://%s: status %d: %.300s", b.Bucket, status, body)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return "", fmt.Errorf("bucket gs://%s: %w", b.Bucket, err)
	}
	if v.RetentionPolicy.RetentionPeriod > 0 {
		return "", fmt.Errorf("gs://%s has a retention policy, so uploads could not be deleted; use another bucket", b.Bucket)
	}
	about := fmt.Sprintf("bucket in %s, %s, versioning %t", v.Location, v.StorageClass, v.Versioning.Enabled)
	if d := v.SoftDeletePolicy.RetentionDurationSeconds; d > 0 {
		about += fmt.Sprintf(", soft delete: what is deleted is kept, and paid for, for %v more", time.Duration(d)*time.Second)
	}
	return about, nil
}

// object returns the metadata of an object.
func (b *bucket) object(ctx context.Context, name string) (*fakegcs.Object, error) {
	status, body, err := b.do(ctx, http.MethodGet, "/o/"+url.PathEscape(name), "")
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("object %s: status %d: %.300s", name, status, body)
	}
	o := new(fakegcs.Object)
	if err := json.Unmarshal(body, o); err != nil {
		return nil, fmt.Errorf("object %s: %w", name, err)
	}
	return o, nil
}

// empty deletes every generation of every object below the prefix, and reports
// what it cannot delete.
func (b *bucket) empty(ctx context.Context, r *report) {
	stays := func(what, why string) {
		r.add(line{Type: notDeleted, Name: what, Seen: why, Do: "delete it, with all its generations, when you can"})
	}
	for page := ""; ; {
		var list struct {
			Items         []fakegcs.Object
			NextPageToken string
		}
		status, body, err := b.do(ctx, http.MethodGet, "/o?versions=true&prefix="+url.QueryEscape(b.Prefix)+"&pageToken="+url.QueryEscape(page), "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %.300s", status, body)
		}
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		if err != nil {
			stays("gs://"+b.Bucket+"/"+b.Prefix, "it can't be listed: "+err.Error())
			return
		}
		for _, o := range list.Items {
			if err := b.remove(ctx, o); err != nil {
				stays(fmt.Sprintf("gs://%s/%s#%d", b.Bucket, o.Name, o.Generation), err.Error())
			}
		}
		if page = list.NextPageToken; page == "" {
			return
		}
	}
}

// remove deletes one generation. It succeeds if the generation does not exist.
func (b *bucket) remove(ctx context.Context, o fakegcs.Object) error {
	path := "/o/" + url.PathEscape(o.Name) + "?generation=" + strconv.FormatInt(o.Generation, 10)
	if o.TemporaryHold || o.EventBasedHold {
		if _, _, err := b.do(ctx, http.MethodPatch, path, `{"temporaryHold":false,"eventBasedHold":false}`); err != nil {
			return err
		}
	}
	status, body, err := b.do(ctx, http.MethodDelete, path, "")
	if err != nil {
		return err
	}
	if status/100 != 2 && status != http.StatusNotFound {
		return fmt.Errorf("status %d: %.300s", status, body)
	}
	return nil
}

// do makes a request for a path below the bucket's resource. It retries failures
// that the service declares retryable, for the target's Patience.
func (b *bucket) do(ctx context.Context, method, path, content string) (status int, body []byte, err error) {
	deadline := time.Now().Add(b.Patience)
	for {
		status, body, err = b.once(ctx, method, path, content)
		again := err != nil || status == http.StatusTooManyRequests || status >= 500
		if !again || ctx.Err() != nil || time.Now().After(deadline) {
			return status, body, err
		}
		time.Sleep(time.Second) // Ctrl-C is checked afterwards
	}
}

func (b *bucket) once(ctx context.Context, method, path, content string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, b.URL+"/storage/v1/b/"+url.PathEscape(b.Bucket)+path, strings.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	if content != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := b.Client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return resp.StatusCode, body, err
}
