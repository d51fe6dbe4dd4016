package fakegcs

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// conditions are the preconditions of a request; nil pointers are not checked.
// https://cloud.google.com/storage/docs/request-preconditions
type conditions struct {
	Generation        *int64 `json:"generation,omitempty"`
	GenerationNot     *int64 `json:"generationNot,omitempty"`
	Metageneration    *int64 `json:"metageneration,omitempty"`
	MetagenerationNot *int64 `json:"metagenerationNot,omitempty"`
}

// tagConditions are the entity tags in the headers If-Match and If-None-Match of a read.
// https://cloud.google.com/storage/docs/request-preconditions#http
type tagConditions struct{ match, noneMatch string }

func (q *request) tagConditions() tagConditions {
	return tagConditions{strings.Join(q.Header.Values("If-Match"), ","), strings.Join(q.Header.Values("If-None-Match"), ",")}
}

// check checks t against the entity tag of the object, which exists. Failures are those of [conditions].
func (t tagConditions) check(tag string) *apiError {
	switch {
	case t.match != "" && !listsTag(t.match, tag):
		return errCondition()
	case t.noneMatch != "" && listsTag(t.noneMatch, tag):
		return refuse(http.StatusNotModified, "notModified", "Not Modified")
	}
	return nil
}

// listsTag reports whether a list of entity tags has a tag, with or without quotation marks. The JSON API
// writes tags without them.
func listsTag(list, tag string) bool {
	tag = strings.Trim(tag, `"`)
	for item := range strings.SplitSeq(list, ",") {
		item = strings.Trim(strings.TrimPrefix(strings.TrimSpace(item), "W/"), `"`)
		if item == "*" || item == tag {
			return true
		}
	}
	return false
}

func errCondition() *apiError {
	return refuse(http.StatusPreconditionFailed, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
}

// parseConditions reads the preconditions from a JSON API query or from XML API
// headers. Prefix is "if" for the object that is written or read, "ifSource" for the
// source of a rewrite.
func parseConditions(query url.Values, header http.Header, prefix string) (conditions, *apiError) {
	var c conditions
	for _, f := range []struct {
		param string
		to    **int64
	}{
		{"GenerationMatch", &c.Generation},
		{"GenerationNotMatch", &c.GenerationNot},
		{"MetagenerationMatch", &c.Metageneration},
		{"MetagenerationNotMatch", &c.MetagenerationNot},
	} {
		if v := query.Get(prefix + f.param); v != "" {
			n, err := parseInt(prefix+f.param, v)
			if err != nil {
				return c, err
			}
			*f.to = &n
		}
	}
	if prefix != "if" {
		return c, nil
	}
	for _, f := range []struct {
		header string
		to     **int64
	}{
		{"X-Goog-If-Generation-Match", &c.Generation},
		{"X-Goog-If-Metageneration-Match", &c.Metageneration},
	} {
		if v := header.Get(f.header); v != "" {
			n, err := parseInt(strings.ToLower(f.header), v)
			if err != nil {
				return c, err
			}
			*f.to = &n
		}
	}
	return c, nil
}

// conditions returns the preconditions of q on its object or bucket.
func (q *request) conditions() (conditions, *apiError) {
	return parseConditions(q.query, q.Header, "if")
}

// target returns the generation of the object that q names, 0 for the live one, and
// the preconditions.
func (q *request) target() (generation int64, cond conditions, err *apiError) {
	if generation, err = generationParam(q.query.Get("generation")); err != nil {
		return 0, cond, err
	}
	cond, err = q.conditions()
	return generation, cond, err
}

// generationParam parses the generation parameter of a request. It returns 0 if the
// parameter is missing.
func generationParam(value string) (int64, *apiError) {
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0, invalid("Invalid value for generation: '%s'.", value)
	}
	return n, nil
}

// check checks c against the live object, which is nil if there is none. A failed
// match is 412 and a failed not-match is 304, for writes and for reads:
// https://github.com/googleapis/storage-testbench/blob/main/testbench/common.py does
// so, and https://github.com/kmoneil/zig-gcp/blob/main/docs/storage/buckets.md has
// measured it on a bucket's patch.
func (c conditions) check(o *Object) *apiError {
	var gen, metagen int64 // 0 if there is no object
	if o != nil {
		gen, metagen = o.Generation, o.Metageneration
	}
	if c.Generation != nil && *c.Generation != gen || c.Metageneration != nil && *c.Metageneration != metagen {
		return errCondition()
	}
	if c.GenerationNot != nil && *c.GenerationNot == gen || c.MetagenerationNot != nil && *c.MetagenerationNot == metagen {
		return refuse(http.StatusNotModified, "notModified", "Not Modified")
	}
	return nil
}
