package fakegcs

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
)

// nameUpload gives a request that begins an upload the name that only its
// metadata has, as Python's client and gcloud send it, for faults that match
// objects. What it reads of the body is there to be read again.
func (q *request) nameUpload() {
	boundary := multipartBoundary(q.Header.Get("Content-Type"))
	if q.object != "" || q.xml || q.op != OpStart && (q.op != OpInsert || boundary == "") {
		return
	}
	var ahead bytes.Buffer
	under := q.in.r
	metadata := io.TeeReader(io.LimitReader(under, metadataLimit), &ahead)
	defer func() { q.in.r = io.MultiReader(&ahead, under) }()
	if q.op == OpInsert {
		first, err := multipart.NewReader(metadata, boundary).NextRawPart()
		if err != nil {
			return // the insert will report it
		}
		metadata = first
	}
	var named struct {
		Name string `json:"name"`
	}
	if json.NewDecoder(metadata).Decode(&named) == nil {
		q.object = named.Name
	}
}
