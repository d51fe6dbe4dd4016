package bucket

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"gcsup/internal/checksum"
	"gcsup/internal/objectmeta"
	"gcsup/session"
)

// contentLimit bounds the content that Read returns.
const contentLimit = 32 << 20

// Read reads the content of a small object, such as a saved upload. generation is the
// version to read; 0 is the current one. The content is nil if the reply does not
// have it; the reply then has the reason. Read compares the CRC32C that the service
// sends, and returns at most 32 MiB.
// https://cloud.google.com/storage/docs/json_api/v1/objects/get
func Read(ctx context.Context, client *session.Client, spec session.Spec, generation int64) ([]byte, session.Reply) {
	q := url.Values{"alt": {"media"}, "userProject": {spec.UserProject}}
	if generation != 0 {
		q.Set("generation", strconv.FormatInt(generation, 10))
	}
	x := request(OpRead, http.MethodGet, q, "b", spec.Bucket, "o", spec.Object)
	var content []byte
	x.Read = func(r *session.Reply, resp *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(resp.Body, contentLimit+1))
		if err != nil {
			return fmt.Errorf("read the content: %w", err)
		}
		if len(text) > contentLimit {
			r.Err = fmt.Errorf("read the content: more than %d bytes", contentLimit)
			return nil
		}
		if want, ok := objectmeta.CRC32C(resp.Header, "X-Goog-Hash"); ok && checksum.Update(0, text) != want {
			return fmt.Errorf("read the content: %w", session.ErrChecksum)
		}
		content = text
		return nil
	}
	r := client.Do(ctx, x)
	return content, r
}

// Delete deletes an object with the preconditions of spec. Status 204 means success. A
// bucket with versioning keeps the object as a noncurrent version.
// https://cloud.google.com/storage/docs/json_api/v1/objects/delete
func Delete(ctx context.Context, client *session.Client, spec session.Spec) session.Reply {
	return remove(ctx, client, spec, spec.Conditions())
}

// DeleteGeneration deletes one generation of an object, with the preconditions of spec. A
// bucket with versioning does not keep it.
// https://cloud.google.com/storage/docs/deleting-objects#delete-noncurrent
func DeleteGeneration(ctx context.Context, client *session.Client, spec session.Spec, generation int64) session.Reply {
	q := spec.Conditions()
	q.Set("generation", strconv.FormatInt(generation, 10))
	return remove(ctx, client, spec, q)
}

func remove(ctx context.Context, client *session.Client, spec session.Spec, q url.Values) session.Reply {
	q.Set("userProject", spec.UserProject)
	return client.Do(ctx, request(OpDelete, http.MethodDelete, q, "b", spec.Bucket, "o", spec.Object))
}

// ComposeMax is the largest number of objects that one request composes.
// https://cloud.google.com/storage/docs/composite-objects
const ComposeMax = 32

// Component is an object that a compose makes a part of another object.
type Component struct {
	Name       string `json:"name"`
	Generation int64  `json:"generation,string"`
}

// composeRequest is the body of a compose.
type composeRequest struct {
	Kind          string          `json:"kind"`
	SourceObjects []composeSource `json:"sourceObjects"`
	Destination   json.RawMessage `json:"destination"`
	DeleteSources bool            `json:"deleteSourceObjects,omitempty"`
}

type composeSource struct {
	Component
	Preconditions composePrecondition `json:"objectPreconditions"`
}

type composePrecondition struct {
	IfGenerationMatch int64 `json:"ifGenerationMatch,string"`
}

// Compose makes the object of spec from at most ComposeMax objects of its bucket, in
// their order. Each must have the given generation. crc32c is the checksum of the new
// object, which the service checks before it creates the object. If deleteSources is
// set, it deletes the components, even if the bucket has soft delete.
// https://cloud.google.com/storage/docs/json_api/v1/objects/compose
func Compose(ctx context.Context, client *session.Client, spec session.Spec, components []Component, crc32c uint32, deleteSources bool) session.Reply {
	made := spec
	made.Object, made.CRC32C = "", &crc32c
	resource, err := made.Resource()
	if err != nil {
		return unsent(OpCompose, err)
	}
	body := composeRequest{Kind: "storage#composeRequest", Destination: resource, DeleteSources: deleteSources}
	for _, component := range components {
		body.SourceObjects = append(body.SourceObjects, composeSource{component, composePrecondition{component.Generation}})
	}
	data, err := json.Marshal(body)
	if err != nil {
		return unsent(OpCompose, err)
	}
	q := spec.Conditions()
	q.Set("destinationPredefinedAcl", spec.PredefinedACL)
	q.Set("kmsKeyName", spec.KMSKeyName)
	q.Set("userProject", spec.UserProject)
	x := request(OpCompose, http.MethodPost, q, "b", spec.Bucket, "o", spec.Object, "compose")
	x.Header, x.Content = map[string]string{"Content-Type": "application/json; charset=UTF-8"}, data
	return client.Do(ctx, x)
}

// unsent returns the reply to a request that was not sent because of err.
func unsent(op session.Op, err error) session.Reply {
	return session.Reply{Op: op, Committed: -1, Err: err}
}
