package fakegcs

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/internal/strictjson"
)

// What changes objects that are there: patch, rewrite and copy, restore.

// patch changes an object's metadata, https://cloud.google.com/storage/docs/json_api/v1/objects/patch.
// A PUT (update) is taken as a patch: what is not given stays.
func (s *Server) patch(q *request) *reply {
	key, err := encryptionKey(q.Header, "x-goog-encryption-")
	if err != nil {
		return err.reply(q.xml)
	}
	o, err := s.patchObject(q, key)
	if err != nil {
		return err.reply(q.xml)
	}
	return jsonReply(http.StatusOK, q.resource(o).withheld(key))
}

func (s *Server) patchObject(q *request, key *Encryption) (*Object, *apiError) {
	generation, err := generationParam(q.query.Get("generation"))
	if err != nil {
		return nil, err
	}
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return nil, err
	}
	body, err := readMetadata(q.in)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(q.bucket)
	if err != nil {
		return nil, err
	}
	v := b.version(q.object, generation)
	if v == nil {
		return nil, errNoObject(q.bucket, q.object)
	}
	if err := cond.check(v.Object); err != nil {
		return nil, err
	}
	if err := fits(key, v.Object); err != nil {
		return nil, err
	}
	now := s.now()
	o := v.clone()
	if err := o.change(body); err != nil {
		return nil, err
	}
	if err := mayRetain(v.Retention, o.Retention, q.query.Get("overrideUnlockedRetention") == "true", now); err != nil {
		return nil, err
	}
	o.Metageneration++
	o.Updated = now
	o.sign()
	changed := v.with(o)
	if o.EventBasedHold != v.EventBasedHold { // the retention period begins when the hold ends
		changed.retained = now
		b.RetentionPolicy.begin(o, now)
	}
	if err := s.saveObject(changed); err != nil {
		return nil, errInternal(err)
	}
	g := b.objects[o.Name]
	if g.live == v {
		g.live = changed
	} else if i := slices.Index(g.old, v); i >= 0 {
		g.old[i] = changed
	}
	return o, nil
}

// change applies the fields of a patch body that a caller may change. Those that
// only the service sets are ignored, as it does; others are refused.
func (o *Object) change(body []byte) *apiError {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return refuse(http.StatusBadRequest, "parseError", "Parse Error: %v", err)
	}
	texts := map[string]*string{
		"contentType": &o.ContentType, "contentEncoding": &o.ContentEncoding, "contentDisposition": &o.ContentDisposition,
		"contentLanguage": &o.ContentLanguage, "cacheControl": &o.CacheControl,
	}
	for name, raw := range fields {
		var err error
		switch to := texts[name]; {
		case to != nil:
			*to = ""
			err = json.Unmarshal(raw, to)
		case name == "metadata" && string(raw) == "null":
			o.Metadata = nil
		case name == "metadata":
			var patch map[string]*string
			err = json.Unmarshal(raw, &patch)
			o.Metadata = merge(o.Metadata, patch)
			if tooLarge := checkMetadata(o.Metadata); tooLarge != nil {
				return tooLarge
			}
		case name == "temporaryHold":
			o.TemporaryHold = false
			err = json.Unmarshal(raw, &o.TemporaryHold)
		case name == "eventBasedHold":
			o.EventBasedHold = false
			err = json.Unmarshal(raw, &o.EventBasedHold)
		case name == "customTime" && string(raw) != "null":
			was := o.CustomTime
			if err = json.Unmarshal(raw, &o.CustomTime); err == nil && o.CustomTime.Before(was) {
				return invalid("Custom time can't be moved back.")
			}
		case name == "retention" && string(raw) != "{}": // that changes nothing
			o.Retention = nil
			if err = strictjson.Decode(raw, &o.Retention, name); o.Retention != nil && *o.Retention == (Retention{}) {
				o.Retention = nil // both fields null take it away
			}
		case name == "contexts":
			o.Contexts = nil
			err = json.Unmarshal(raw, &o.Contexts)
		case name == "customTime", name == "retention": // nothing that changes
		default:
			if refused := unkept("object", name, raw, objectOutput, objectMissing); refused != nil {
				return refused
			}
		}
		if err != nil {
			return invalid("Invalid value for %s: %v", name, err)
		}
	}
	return nil
}

// rewrite copies an object, in one step whatever its size: rewriteTo, copyTo
// and the XML copy. The bytes are shared.
func (s *Server) rewrite(q *request) *reply {
	o, err := s.rewriteObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	switch {
	case q.xml:
		return xmlReply(http.StatusOK, xmlCopyResult{ETag: `"` + o.Etag + `"`, LastModified: o.Updated.Format(time.RFC3339Nano)})
	case q.rest[0] == "copyTo":
		return jsonReply(http.StatusOK, q.resource(o))
	}
	size := strconv.FormatInt(o.Size, 10)
	return jsonReply(http.StatusOK, map[string]any{
		"kind": "storage#rewriteResponse", "done": true, "objectSize": size, "totalBytesRewritten": size, "resource": q.resource(o),
	})
}

type xmlCopyResult struct {
	XMLName      xml.Name `xml:"CopyObjectResult"`
	ETag         string
	LastModified string
}

func (s *Server) rewriteObject(q *request) (*Object, *apiError) {
	fromBucket, fromName, toBucket, toName := q.bucket, q.object, q.bucket, q.object
	generation, sourceKey := q.query.Get("sourceGeneration"), "x-goog-copy-source-encryption-"
	if q.xml {
		source, err := url.PathUnescape(strings.TrimPrefix(q.Header.Get("x-goog-copy-source"), "/"))
		if err != nil {
			return nil, invalid("Invalid x-goog-copy-source '%s'.", q.Header.Get("x-goog-copy-source"))
		}
		fromBucket, fromName, _ = strings.Cut(source, "/")
		generation = q.Header.Get("x-goog-copy-source-generation")
	} else {
		toBucket, toName = q.rest[2], q.rest[4]
	}
	number, err := generationParam(generation)
	if err != nil {
		return nil, err
	}
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return nil, err
	}
	sourceCond, err := parseConditions(q.query, nil, "ifSource")
	if err != nil {
		return nil, err
	}
	body, err := readMetadata(q.in)
	if err != nil {
		return nil, err
	}
	if err := checkName(toName); err != nil {
		return nil, err
	}
	source, err := s.find(fromBucket, fromName, number)
	if err != nil {
		return nil, err
	}
	release := func(err *apiError) (*Object, *apiError) {
		source.blob.Release()
		return nil, err
	}
	if err := sourceCond.check(source.Object); err != nil {
		return release(err)
	}
	if err := mayRead(source.Object, q.Header, sourceKey); err != nil {
		return release(err)
	}
	// The destination keeps the metadata of the source unless it is given some,
	// which then is all. Its storage class and KMS key are the defaults of its
	// bucket, and what protects the source doesn't protect it.
	o := source.clone()
	o.StorageClass, o.KMSKeyName = "", ""
	o.TemporaryHold, o.EventBasedHold, o.Retention = false, false, nil
	if given, _, err := decodeObject(body); err != nil {
		return release(err)
	} else if hasMetadata(body) {
		given.Size, given.CRC32C, given.MD5, given.ComponentCount = o.Size, o.CRC32C, o.MD5, o.ComponentCount
		o = given
	}
	o.Bucket, o.Name = toBucket, toName
	o.TimeDeleted, o.RetentionExpirationTime = time.Time{}, time.Time{}
	if err := checkMetadata(o.Metadata); err != nil {
		return release(err)
	}
	if err := mayRetain(nil, o.Retention, false, s.now()); err != nil {
		return release(err)
	}
	if o.CustomerEncryption, err = encryptionKey(q.Header, "x-goog-encryption-"); err != nil {
		return release(err)
	}
	made, err := s.publish(o, source.blob, cond)
	if err != nil {
		return release(err)
	}
	return made, nil
}

// hasMetadata tells whether a rewrite's body names any field.
func hasMetadata(body []byte) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(body, &fields) == nil && len(fields) > 0
}

// errNoSoftDelete refuses what needs a soft delete policy, as
// https://github.com/kmoneil/zig-gcp/blob/main/src/storage/restore.zig has
// measured.
func errNoSoftDelete() *apiError { return invalid("bucket soft delete policy must be set.") }

// findSoftDeleted finds a soft-deleted generation. The caller releases the blob.
func (s *Server) findSoftDeleted(bucketName, name string, generation int64) (*version, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.bucketLocked(bucketName)
	if err != nil {
		return nil, err
	}
	if b.softDeleteFor() == 0 {
		return nil, errNoSoftDelete()
	}
	if generation == 0 {
		return nil, refuse(http.StatusBadRequest, "required", "You must specify a generation.")
	}
	s.expireLocked(b, s.now())
	if g := b.objects[name]; g != nil {
		for _, v := range g.soft {
			if v.Generation == generation {
				v.blob.Retain()
				return v, nil
			}
		}
	}
	return nil, errNoObject(bucketName, name)
}

// restore makes a new live generation of a soft-deleted one,
// https://cloud.google.com/storage/docs/json_api/v1/objects/restore.
func (s *Server) restore(q *request) *reply {
	o, err := s.restoreObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	return jsonReply(http.StatusOK, q.resource(o).withheld(nil))
}

func (s *Server) restoreObject(q *request) (*Object, *apiError) {
	generation, err := generationParam(q.query.Get("generation"))
	if err != nil {
		return nil, err
	}
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return nil, err
	}
	v, err := s.findSoftDeleted(q.bucket, q.object, generation)
	if err != nil {
		return nil, err
	}
	o := v.clone()
	o.SoftDeleteTime, o.HardDeleteTime, o.TimeDeleted = time.Time{}, time.Time{}, time.Time{}
	made, err := s.publish(o, v.blob, cond)
	if err != nil {
		v.blob.Release()
		return nil, err
	}
	return made, nil
}
