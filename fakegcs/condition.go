package fakegcs

import (
	"net/http"
	"net/url"
)

// conditions are the preconditions of a request; nil pointers are not asked.
// https://cloud.google.com/storage/docs/request-preconditions
type conditions struct {
	Generation        *int64 `json:"generation,omitempty"`
	GenerationNot     *int64 `json:"generationNot,omitempty"`
	Metageneration    *int64 `json:"metageneration,omitempty"`
	MetagenerationNot *int64 `json:"metagenerationNot,omitempty"`
}

// parseConditions reads them from a JSON API query or from XML API headers.
// Prefix is "if" for the object that is written or read, "ifSource" for the
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
		{"x-goog-if-generation-match", &c.Generation},
		{"x-goog-if-metageneration-match", &c.Metageneration},
	} {
		if v := header.Get(f.header); v != "" {
			n, err := parseInt(f.header, v)
			if err != nil {
				return c, err
			}
			*f.to = &n
		}
	}
	return c, nil
}

// check holds c against the live object, nil when there is none. A failed
// not-match is 304 for reads, as documented, and 412 for all else.
func (c conditions) check(o *Object, read bool) *apiError {
	var gen, metagen int64 // of an object that isn't there: 0
	if o != nil {
		gen, metagen = o.Generation, o.Metageneration
	}
	failed := refuse(http.StatusPreconditionFailed, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.")
	if c.Generation != nil && *c.Generation != gen || c.Metageneration != nil && *c.Metageneration != metagen {
		return failed
	}
	if c.GenerationNot != nil && *c.GenerationNot == gen || c.MetagenerationNot != nil && *c.MetagenerationNot == metagen {
		if read {
			failed.status = http.StatusNotModified
		}
		return failed
	}
	return nil
}
