package fakegcs

import (
	"encoding/json"
	"net/http"
	"time"

	"gcsup/fakegcs/internal/strictjson"
)

// patch changes an object's metadata, https://cloud.google.com/storage/docs/json_api/v1/objects/patch.
// A PUT (update) is processed as a patch, so that fields that it omits stay.
func (a objectAPI) patch(q *request) *reply {
	key, err := encryptionKey(q.Header, "x-goog-encryption-")
	if err != nil {
		return err.reply(q.xml)
	}
	o, err := a.patchObject(q, key)
	if err != nil {
		return err.reply(q.xml)
	}
	return jsonReply(http.StatusOK, q.resource(o).withoutChecksums(key))
}

func (a objectAPI) patchObject(q *request, key *Encryption) (*Object, *apiError) {
	generation, cond, err := q.target()
	if err != nil {
		return nil, err
	}
	body, err := readMetadata(q.in)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b, v, err := a.versionLocked(q.bucket, q.object, generation)
	if err != nil {
		return nil, err
	}
	if err := cond.check(v.Object); err != nil {
		return nil, err
	}
	if err := checkKey(key, v.Object); err != nil {
		return nil, err
	}
	now := a.now()
	o := v.clone()
	if err := o.change(body, now); err != nil {
		return nil, err
	}
	if err := checkRetention(v.Retention, o.Retention, q.query.Get("overrideUnlockedRetention") == "true", now); err != nil {
		return nil, err
	}
	changed := v.with(o)
	if o.EventBasedHold != v.EventBasedHold { // the retention period begins when the hold ends
		changed.retained = now
		b.RetentionPolicy.begin(o, now)
	}
	if _, err := a.replaceLocked(b, v, changed); err != nil {
		return nil, err
	}
	return o, nil
}

// change applies the fields of a patch body that a caller may change. Like the
// service, it ignores fields that only the service sets. It refuses others.
func (o *Object) change(body []byte, now time.Time) *apiError {
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
		case name == "retention" && string(raw) != "{}": // {} changes nothing
			o.Retention = nil
			if err = strictjson.Decode(raw, &o.Retention, name); o.Retention != nil && *o.Retention == (Retention{}) {
				o.Retention = nil // null in both fields removes it
			}
		case name == "acl":
			rules, refused := parseACL(raw, objectRoles)
			switch {
			case refused != nil:
				return refused
			case o.Owner == nil:
				return errUniform("update")
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
