package fakegcs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
)

// rewriteToken is the state of a rewrite that takes several requests. The client sends it
// with the next one, so that the server keeps nothing.
// https://cloud.google.com/storage/docs/json_api/v1/objects/rewrite
type rewriteToken struct {
	Source      string // ID, with the generation
	Destination string // bucket and name
	Step        int64  // maxBytesRewrittenPerCall
	Done        int64  // bytes so far
	Size        int64
	Metadata    []byte // the body of the first request, which the others may omit
}

// errRewriteToken reports a token that is not that of this rewrite.
func errRewriteToken() *apiError { return invalid("Invalid rewriteToken.") }

// rewriteToken returns the token that q brings, or nil.
func (q *request) rewriteToken() (*rewriteToken, *apiError) {
	text := q.query.Get("rewriteToken")
	if text == "" {
		return nil, nil
	}
	var t rewriteToken
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &t) != nil || t.Step <= 0 {
		return nil, errRewriteToken()
	}
	return &t, nil
}

// nextStep returns the token for the next request of a rewrite, or nil if q is the last one.
// A rewrite takes several requests if q has maxBytesRewrittenPerCall, and the location or the
// storage class changes.
func (a objectAPI) nextStep(q *request, was *rewriteToken, from, to *Object, body []byte) (*rewriteToken, *apiError) {
	const unit = 1 << 20
	next := rewriteToken{Source: from.Bucket + "/" + from.Name + "/" + strconv.FormatInt(from.Generation, 10), Destination: to.Bucket + "/" + to.Name, Size: from.Size, Metadata: body}
	if limit := q.query.Get("maxBytesRewrittenPerCall"); limit != "" {
		n, err := parseInt("maxBytesRewrittenPerCall", limit)
		if err != nil {
			return nil, err
		}
		if n <= 0 || n%unit != 0 {
			return nil, invalid("Invalid value for maxBytesRewrittenPerCall: '%s'. It must be a multiple of %d.", limit, unit)
		}
		next.Step = n
	} else if was != nil {
		next.Step = was.Step
	}
	if was != nil {
		if was.Source != next.Source || was.Destination != next.Destination || was.Step != next.Step || !bytes.Equal(was.Metadata, next.Metadata) {
			return nil, errRewriteToken()
		}
		next.Done = was.Done
	}
	if next.Step == 0 {
		return nil, nil
	}
	spans, err := a.spans(from, to)
	if next.Done += next.Step; err != nil || !spans || next.Done >= from.Size {
		return nil, err
	}
	return &next, nil
}

// spans reports whether a copy has another location or storage class than its source.
func (a objectAPI) spans(from, to *Object) (bool, *apiError) {
	source, err := a.resourceOf(from.Bucket, conditions{})
	if err != nil {
		return false, err
	}
	destination, err := a.resourceOf(to.Bucket, conditions{})
	if err != nil {
		return false, err
	}
	class := to.StorageClass
	if class == "" {
		class = destination.StorageClass
	}
	return source.Location != destination.Location || from.StorageClass != class, nil
}

// reply returns the reply to a request that is not the last one of a rewrite.
func (t *rewriteToken) reply() *reply {
	text, err := json.Marshal(t)
	if err != nil { // cannot happen: strings, numbers and bytes
		return errInternal(err).reply(false)
	}
	return jsonReply(http.StatusOK, map[string]any{
		"kind": "storage#rewriteResponse", "done": false, "objectSize": strconv.FormatInt(t.Size, 10),
		"totalBytesRewritten": strconv.FormatInt(t.Done, 10), "rewriteToken": base64.RawURLEncoding.EncodeToString(text),
	})
}
