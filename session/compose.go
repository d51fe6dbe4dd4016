package session

import (
	"bytes"
	"context"
	"encoding/json"
	"gcsup/internal/checksum"
	"net/url"
)

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
	Destination   objectResource  `json:"destination"`
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
func (c *Client) Compose(ctx context.Context, spec Spec, components []Component, crc32c uint32, deleteSources bool) Reply {
	body := composeRequest{Kind: "storage#composeRequest", Destination: spec.resource(), DeleteSources: deleteSources}
	body.Destination.CRC32C, body.Destination.Name = checksum.Encode(crc32c), ""
	for _, component := range components {
		body.SourceObjects = append(body.SourceObjects, composeSource{component, composePrecondition{component.Generation}})
	}
	data, err := json.Marshal(body)
	if err != nil {
		return unsent(OpCompose, err)
	}
	q := url.Values{"destinationPredefinedAcl": {spec.PredefinedACL}, "kmsKeyName": {spec.KMSKeyName}, "userProject": {spec.UserProject}}
	return c.do(ctx, call{
		op: OpCompose, method: "POST", url: c.url(spec.withConditions(q), "storage", "v1", "b", spec.Bucket, "o", spec.Object, "compose"),
		header: map[string]string{"Content-Type": jsonType}, body: bytes.NewReader(data), length: int64(len(data)), content: data,
	})
}
