package session

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gcsup/chunk"
)

// Object is the metadata of a finalized object, as far as an upload needs it.
type Object struct {
	Bucket         string
	Name           string
	Generation     int64
	Metageneration int64
	Size           int64
	CRC32C         uint32
	HasCRC32C      bool // the reply had a CRC32C; the service has one for every object
	ContentType    string
	Created        time.Time // when this generation was created; zero if the reply does not have it
	FileModTime    time.Time // modification time of the source in whole seconds, from FileModTimeKey; zero if the object or the reply does not have it
}

// parseObject parses an Object resource. It returns nil for anything else: an
// empty or truncated body, HTML, or JSON without a size. If JSON has a
// generation and a checksum, a missing size is 0, because Google's test bench
// omits zeros.
func parseObject(body []byte) *Object {
	var r struct {
		Bucket         string      `json:"bucket"`
		Name           string      `json:"name"`
		Generation     json.Number `json:"generation"`
		Metageneration json.Number `json:"metageneration"`
		Size           json.Number `json:"size"`
		CRC32C         string      `json:"crc32c"`
		ContentType    string      `json:"contentType"`
		Created        time.Time   `json:"timeCreated"`
		Metadata       struct {
			FileModTime string `json:"goog-reserved-file-mtime"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body, &r) != nil {
		return nil
	}
	o := &Object{Bucket: r.Bucket, Name: r.Name, ContentType: r.ContentType, Created: r.Created, FileModTime: ParseFileModTime(r.Metadata.FileModTime)}
	var err error
	o.Generation, _ = r.Generation.Int64()
	if r.Size == "" && o.Generation > 0 && r.CRC32C != "" {
		r.Size = "0"
	}
	if o.Size, err = r.Size.Int64(); err != nil || o.Size < 0 {
		return nil
	}
	o.Metageneration, _ = r.Metageneration.Int64()
	if crc, err := chunk.DecodeCRC32C(r.CRC32C); err == nil {
		o.CRC32C, o.HasCRC32C = crc, true
	}
	return o
}

// objectFromHeaders parses the x-goog headers of the last reply of a session of
// the XML API or a signed URL, which has an empty body.
// https://cloud.google.com/storage/docs/xml-api/reference-headers
func objectFromHeaders(h http.Header) *Object {
	generation, err := strconv.ParseInt(h.Get("X-Goog-Generation"), 10, 64)
	if err != nil {
		return nil
	}
	size, err := strconv.ParseInt(h.Get("X-Goog-Stored-Content-Length"), 10, 64)
	if err != nil || size < 0 {
		return nil
	}
	o := &Object{Generation: generation, Size: size}
	o.Metageneration, _ = strconv.ParseInt(h.Get("X-Goog-Metageneration"), 10, 64)
	o.CRC32C, o.HasCRC32C = hashHeader(h, "X-Goog-Hash")
	return o
}

// hashHeader returns the crc32c of a header such as X-Goog-Hash, which may have
// several hashes in one or more lines.
func hashHeader(h http.Header, key string) (uint32, bool) {
	for _, line := range h.Values(key) {
		for part := range strings.SplitSeq(line, ",") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(part), "crc32c="); ok {
				crc, err := chunk.DecodeCRC32C(value)
				return crc, err == nil
			}
		}
	}
	return 0, false
}
