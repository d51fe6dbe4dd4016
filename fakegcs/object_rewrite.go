package fakegcs

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// rewrite copies an object: rewriteTo, copyTo and the XML copy. The copy shares the bytes.
// It is one step, unless the request limits its bytes.
func (a objectAPI) rewrite(q *request) *reply {
	o, next, err := a.rewriteObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	switch {
	case next != nil:
		return next.reply()
	case q.xml:
		return xmlReply(http.StatusOK, xmlCopyResult{ETag: o.xmlTag(), LastModified: o.Updated.Format(timeFormat)})
	case q.rest[0] == "copyTo":
		return objectReply(http.StatusOK, q.resource(o))
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

// rewriteObject copies an object. It returns the copy, or the token of the next step.
func (a objectAPI) rewriteObject(q *request) (*Object, *rewriteToken, *apiError) {
	fromBucket, fromName, toBucket, toName := q.bucket, q.object, q.bucket, q.object
	generation, sourceKey := q.query.Get("sourceGeneration"), "X-Goog-Copy-Source-Encryption-"
	if q.xml {
		source, err := url.PathUnescape(strings.TrimPrefix(q.Header.Get("x-goog-copy-source"), "/"))
		if err != nil {
			return nil, nil, invalid("Invalid x-goog-copy-source '%s'.", q.Header.Get("x-goog-copy-source"))
		}
		fromBucket, fromName, _ = strings.Cut(source, "/")
		generation = q.Header.Get("x-goog-copy-source-generation")
	} else {
		toBucket, toName = q.rest[2], q.rest[4]
	}
	number, err := generationParam(generation)
	if err != nil {
		return nil, nil, err
	}
	cond, err := q.conditions()
	if err != nil {
		return nil, nil, err
	}
	sourceCond, err := parseConditions(q.query, nil, "ifSource")
	if err != nil {
		return nil, nil, err
	}
	body, err := readMetadata(q.in)
	if err != nil {
		return nil, nil, err
	}
	if err := checkName(toName); err != nil {
		return nil, nil, err
	}
	token, err := q.rewriteToken()
	if err != nil {
		return nil, nil, err
	}
	if token != nil && len(body) == 0 {
		body = token.Metadata
	}
	source, err := a.find(fromBucket, fromName, number)
	if err != nil {
		return nil, nil, err
	}
	release := func(err *apiError) (*Object, *rewriteToken, *apiError) {
		source.blob.Release()
		return nil, nil, err
	}
	if err := sourceCond.check(source.Object); err != nil {
		return release(err)
	}
	if err := checkRead(source.Object, q.Header, sourceKey); err != nil {
		return release(err)
	}
	// The copy has the metadata of the source or, if the request has metadata, only
	// that. Its storage class and KMS key are the defaults of its bucket. Holds,
	// retention and the ACL are not copied.
	o := source.clone()
	o.StorageClass, o.KMSKeyName = "", ""
	o.TemporaryHold, o.EventBasedHold, o.Retention, o.ACL = false, false, nil, nil
	if given, _, err := decodeObject(body); err != nil {
		return release(err)
	} else if fields := named(body); len(fields) == 1 && fields["bucket"] != nil {
		return release(refuse(http.StatusBadRequest, "required", "Required"))
	} else if len(fields) > 0 {
		given.Size, given.CRC32C, given.MD5, given.ComponentCount = o.Size, o.CRC32C, o.MD5, o.ComponentCount
		o = given
	}
	if key := q.query.Get("destinationKmsKeyName"); key != "" {
		o.KMSKeyName = key
	}
	o.Bucket, o.Name = toBucket, toName
	o.TimeDeleted, o.RetentionExpirationTime = time.Time{}, time.Time{}
	if err := checkMetadata(o.Metadata); err != nil {
		return release(err)
	}
	if err := checkRetention(nil, o.Retention, false, a.now()); err != nil {
		return release(err)
	}
	if o.Contexts != source.Contexts {
		if err := o.newContexts(a.now()); err != nil {
			return release(err)
		}
	}
	if err := o.grant(q.query.Get("destinationPredefinedAcl")); err != nil {
		return release(err)
	}
	if o.CustomerEncryption, err = encryptionKey(q.Header, "X-Goog-Encryption-"); err != nil {
		return release(err)
	}
	if next, err := a.nextStep(q, token, source.Object, o, body); err != nil || next != nil {
		source.blob.Release()
		return nil, next, err
	}
	made, err := a.publish(o, source.blob, cond)
	if err != nil {
		return release(err)
	}
	return made, nil, nil
}

// named returns the fields that the body of a request names.
func named(body []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // the caller of named checks it
	return fields
}
