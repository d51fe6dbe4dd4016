package fakegcs

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"gcsup/fakegcs/internal/strictjson"
)

// patch changes an object's metadata, https://cloud.google.com/storage/docs/json_api/v1/objects/patch.
// A PUT (update) also removes the custom metadata and the header fields that it does not name.
func (a objectAPI) patch(q *request) *reply {
	key, err := encryptionKey(q.Header, "X-Goog-Encryption-")
	if err != nil {
		return err.reply(q.xml)
	}
	o, err := a.performPatch(q, key)
	if err != nil {
		return err.reply(q.xml)
	}
	return objectReply(http.StatusOK, q.resource(o).withoutChecksums(key))
}

func (a objectAPI) performPatch(q *request, key *Encryption) (*Object, *apiError) {
	generation, cond, err := q.target()
	if err != nil {
		return nil, err
	}
	body, err := readMetadata(q.in)
	if err != nil {
		return nil, err
	}
	return a.patchObject(objectPatch{
		bucket: q.bucket, name: q.object, generation: generation, fields: body, cond: cond, key: key,
		predefinedACL: q.query.Get("predefinedAcl"), replace: q.Method == http.MethodPut, overrideRetention: q.flag("overrideUnlockedRetention"),
	})
}

// objectPatch describes a change of the metadata of one generation.
type objectPatch struct {
	bucket, name      string
	generation        int64  // 0 is the live one
	fields            []byte // JSON
	cond              conditions
	key               *Encryption // that the caller has, or nil
	predefinedACL     string      // replaces the access control list; "" for none
	replace           bool        // remove what a new object need not have first
	overrideRetention bool        // remove or shorten a retention that is not locked
}

// patchObject changes the metadata of a generation.
func (s *store) patchObject(p objectPatch) (*Object, *apiError) {
	defer s.claim(p.bucket, p.name)()
	s.mu.Lock()
	defer s.mu.Unlock()
	b, v, err := s.versionLocked(p.bucket, p.name, p.generation)
	if err != nil {
		return nil, err
	}
	if err := p.cond.check(v.Object); err != nil {
		return nil, err
	}
	if err := checkKey(p.key, v.Object); err != nil {
		return nil, err
	}
	now := s.now()
	o := v.clone()
	if p.replace {
		o.Metadata, o.ContentType, o.ContentEncoding, o.ContentDisposition, o.ContentLanguage, o.CacheControl = nil, "", "", "", "", ""
	}
	if err := o.change(p.fields, now); err != nil {
		return nil, err
	}
	if p.predefinedACL != "" {
		if o.Owner == nil {
			return nil, errUniform("update", "an object")
		}
		o.ACL = nil
		if err := o.grant(p.predefinedACL); err != nil {
			return nil, err
		}
	}
	if !slices.Equal(o.ACL, v.ACL) {
		if err := b.checkPublicRules(o.ACL); err != nil {
			return nil, err
		}
	}
	if err := checkRetention(v.Retention, o.Retention, p.overrideRetention, now); err != nil {
		return nil, err
	}
	changed := v.with(o)
	if o.EventBasedHold != v.EventBasedHold { // the retention period begins when the hold ends
		changed.retained = now
		b.RetentionPolicy.begin(o, now)
	}
	if _, err := s.replaceLocked(b, v, changed, now); err != nil {
		return nil, err
	}
	return o, nil
}

// change applies the fields of a patch body that a caller may change. Like the
// service, it ignores fields that only the service sets. It refuses others.
func (o *Object) change(body []byte, now time.Time) *apiError {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return refuse(http.StatusBadRequest, "invalid", "Parse Error: %v", err)
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
		case name == "retention" && string(raw) != "{}": // {} changes nothing
			o.Retention = nil
			if err = strictjson.Decode(raw, &o.Retention, name); o.Retention != nil && *o.Retention == (Retention{}) {
				o.Retention = nil // null in both fields removes it
			}
		case name == "acl":
			rules, refused := parseACL(raw, objectACLs.roles)
			switch {
			case refused != nil:
				return refused
			case o.Owner == nil:
				return errUniform("update", "an object")
			}
			o.ACL = rules
			if refused := o.grant(""); refused != nil {
				return refused
			}
		case name == "contexts":
			var refused *apiError
			if o.Contexts, refused = o.Contexts.change(raw, now); refused != nil {
				return refused
			}
		case name == "customTime", name == "retention": // nothing that changes
		default:
			if refused := unkept("object", name, raw, objectOutput, nil); refused != nil {
				return refused
			}
		}
		if err != nil {
			return invalid("Invalid value for %s: %v", name, err)
		}
	}
	return nil
}

// merge returns a copy of old with a patch applied. A nil value removes its key.
func merge(old map[string]string, patch map[string]*string) map[string]string {
	merged := make(map[string]string, len(old)+len(patch))
	for k, v := range old {
		merged[k] = v
	}
	for k, v := range patch {
		if v == nil {
			delete(merged, k)
		} else {
			merged[k] = *v
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}
