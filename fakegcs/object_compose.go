package fakegcs

import (
	"encoding/json"
	"net/http"

	"gcsup/fakegcs/internal/blob"
	"gcsup/fakegcs/internal/strictjson"
)

// maxSources is the maximum number of objects in one compose,
// https://cloud.google.com/storage/docs/composite-objects.
const maxSources = 32

type composeRequest struct {
	Kind          string `json:"kind"`
	SourceObjects []struct {
		Name                string    `json:"name"`
		Generation          int64Text `json:"generation"`
		ObjectPreconditions struct {
			IfGenerationMatch *int64Text `json:"ifGenerationMatch"`
		} `json:"objectPreconditions"`
	} `json:"sourceObjects"`
	Destination         json.RawMessage `json:"destination"`
	DeleteSourceObjects bool            `json:"deleteSourceObjects"`
}

// compose concatenates objects of one bucket.
func (a objectAPI) compose(q *request) *reply {
	o, err := a.composeObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	return objectReply(http.StatusOK, q.resource(o))
}

func (a objectAPI) composeObject(q *request) (*Object, *apiError) {
	cond, err := q.conditions()
	if err != nil {
		return nil, err
	}
	body, err := readMetadata(q.in)
	if err != nil {
		return nil, err
	}
	var ask composeRequest
	if err := strictjson.Decode(body, &ask); err != nil {
		return nil, refuse(http.StatusBadRequest, "invalid", "Parse Error: %v", err)
	}
	switch n := len(ask.SourceObjects); {
	case n == 0:
		return nil, refuse(http.StatusBadRequest, "required", "You must provide at least one source component.")
	case n > maxSources:
		return nil, invalid("The number of source components provided (%d) exceeds the maximum (%d).", n, maxSources)
	}
	o, want, err := decodeObject(ask.Destination)
	if err != nil {
		return nil, err
	}
	// A crc32c must match (the Go library's SendCRC32C), unless there is an md5Hash,
	// too: gcloud sends all metadata of the first source with both, and the service
	// accepts that.
	if want.md5 != nil {
		want = checksums{}
	}
	o.Bucket, o.Name = q.bucket, q.object
	if key := q.query.Get("kmsKeyName"); key != "" {
		o.KMSKeyName = key
	}
	if err := checkName(o.Name); err != nil {
		return nil, err
	}
	if err := checkMetadata(o.Metadata); err != nil {
		return nil, err
	}
	if err := checkRetention(nil, o.Retention, false, a.now()); err != nil {
		return nil, err
	}
	if err := o.newContexts(a.now()); err != nil {
		return nil, err
	}
	if err := o.grant(q.query.Get("destinationPredefinedAcl")); err != nil {
		return nil, err
	}
	if o.StorageClass == "" {
		if o.StorageClass, err = a.defaultClass(q.bucket); err != nil {
			return nil, err
		}
	}
	if o.CustomerEncryption, err = encryptionKey(q.Header, "X-Goog-Encryption-"); err != nil {
		return nil, err
	}

	var sources []*version
	defer func() {
		for _, v := range sources {
			v.blob.Release()
		}
	}()
	for _, source := range ask.SourceObjects {
		v, err := a.find(q.bucket, source.Name, int64(source.Generation))
		if err != nil {
			return nil, err
		}
		sources = append(sources, v)
		if err := (conditions{Generation: (*int64)(source.ObjectPreconditions.IfGenerationMatch)}).check(v.Object); err != nil {
			return nil, err
		}
		if v.StorageClass != o.StorageClass { // the text is of https://github.com/GoogleCloudPlatform/dotnet-docs-samples/issues/2038
			return nil, invalid("Cannot compose object with destination storage class %s from source components that have different storage classes (%s)", o.StorageClass, v.StorageClass)
		}
		if ask.DeleteSourceObjects {
			if err := protected(v, a.now()); err != nil {
				return nil, err
			}
		}
		if err := checkRead(v.Object, q.Header, "X-Goog-Encryption-"); err != nil {
			return nil, err
		}
		o.ComponentCount += max(v.ComponentCount, 1)
	}
	if o.Contexts == nil {
		o.Contexts = contextsOf(sources)
	}
	content := join(o, sources)
	if err := want.check(o); err != nil {
		content.Release()
		return nil, err
	}
	made, err := a.publish(o, content, cond)
	if err != nil {
		content.Release()
		return nil, err
	}
	if ask.DeleteSourceObjects {
		a.dropSources(sources, made)
	}
	return made, nil
}

// join concatenates the bytes of parts, and sets the size of o and the checksum,
// which it combines from those of the parts.
func join(o *Object, parts []*version) *blob.Blob {
	blobs := make([]*blob.Blob, len(parts))
	for i, part := range parts {
		blobs[i] = part.blob
		o.CRC32C = CRC32C(blob.CombineCRC(uint32(o.CRC32C), uint32(part.CRC32C), part.Size))
		o.Size += part.Size
	}
	return blob.Join(blobs).Retain()
}
