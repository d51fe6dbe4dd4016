package fakegcs

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"

	"gcsup/fakegcs/faults"
)

// nameUpload sets the object of a request that starts an upload from its metadata,
// for faults that match objects. Python's client and gcloud send the name only there.
// nameUpload leaves the bytes that it reads in the body.
func (q *request) nameUpload() {
	boundary := multipartBoundary(q.Header.Get("Content-Type"))
	if q.object != "" || q.xml || q.op != faults.OpStart && (q.op != faults.OpInsert || boundary == "") {
		return
	}
	var ahead bytes.Buffer
	under := q.in.r
	metadata := io.TeeReader(io.LimitReader(under, metadataLimit), &ahead)
	defer func() { q.in.r = io.MultiReader(&ahead, under) }()
	if q.op == faults.OpInsert {
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
