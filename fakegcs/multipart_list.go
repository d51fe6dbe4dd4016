package fakegcs

import (
	"cmp"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

type xmlPart struct {
	PartNumber   int
	LastModified string
	ETag         string
	Size         int64
}

func (p *multipartUpload) list(q *request) (*reply, *apiError) {
	limit, refused := pageLimit(q, "max-parts")
	if refused != nil {
		return nil, refused
	}
	after := 0
	if v := q.query.Get("part-number-marker"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return nil, invalid("Invalid part-number-marker '%s'.", v)
		}
		after = n
	}
	out := struct {
		XMLName              xml.Name `xml:"ListPartsResult"`
		Namespace            string   `xml:"xmlns,attr"`
		Bucket, Key          string
		UploadID             string `xml:"UploadId"`
		StorageClass         string
		PartNumberMarker     int
		NextPartNumberMarker int
		MaxParts             int
		IsTruncated          bool
		Part                 []xmlPart
	}{Namespace: xmlNamespace, Bucket: q.bucket, Key: q.object, UploadID: p.ID, StorageClass: p.Meta.StorageClass, PartNumberMarker: after, MaxParts: limit}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(p.parts)) {
		if n <= after {
			continue
		}
		if len(out.Part) == limit {
			out.IsTruncated = true
			break
		}
		o := p.parts[n].Object
		out.Part = append(out.Part, xmlPart{n, o.Updated.Format(timeFormat), partTag(o), o.Size})
		out.NextPartNumberMarker = n
	}
	if !out.IsTruncated { // https://github.com/kmoneil/zig-gcp/blob/main/docs/storage/transfers.md
		out.NextPartNumberMarker = 0
	}
	return xmlReply(http.StatusOK, out), nil
}

type xmlUpload struct {
	Key                     string
	UploadID                string `xml:"UploadId"`
	StorageClass, Initiated string
}

// list lists the multipart uploads of a bucket, sorted by key and
// upload id, https://cloud.google.com/storage/docs/xml-api/get-bucket-uploads.
func (m *multiparts) list(q *request) (*reply, *apiError) {
	if err := m.store.hasBucket(q.bucket); err != nil {
		return nil, err
	}
	limit, err := pageLimit(q, "max-uploads")
	if err != nil {
		return nil, err
	}
	out := struct {
		XMLName            xml.Name `xml:"ListMultipartUploadsResult"`
		Namespace          string   `xml:"xmlns,attr"`
		Bucket             string
		Prefix             string `xml:",omitempty"`
		KeyMarker          string
		UploadIDMarker     string `xml:"UploadIdMarker"`
		NextKeyMarker      string `xml:",omitempty"`
		NextUploadIDMarker string `xml:"NextUploadIdMarker,omitempty"`
		MaxUploads         int
		IsTruncated        bool
		Upload             []xmlUpload
	}{
		Namespace: xmlNamespace, Bucket: q.bucket, Prefix: q.query.Get("prefix"), MaxUploads: limit,
		KeyMarker: q.query.Get("key-marker"), UploadIDMarker: q.query.Get("upload-id-marker"),
	}
	after := func(u xmlUpload) bool {
		// Without an id the marker is the whole key.
		return u.Key > out.KeyMarker || u.Key == out.KeyMarker && out.UploadIDMarker != "" && u.UploadID > out.UploadIDMarker
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.byID {
		u := xmlUpload{p.Meta.Name, p.ID, p.Meta.StorageClass, p.Initiated.Format(timeFormat)}
		if p.Meta.Bucket == q.bucket && strings.HasPrefix(u.Key, out.Prefix) && after(u) {
			out.Upload = append(out.Upload, u)
		}
	}
	slices.SortFunc(out.Upload, func(a, b xmlUpload) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.UploadID, b.UploadID))
	})
	if len(out.Upload) > limit {
		out.Upload, out.IsTruncated = out.Upload[:limit], true
		last := out.Upload[limit-1]
		out.NextKeyMarker, out.NextUploadIDMarker = last.Key, last.UploadID
	}
	return xmlReply(http.StatusOK, out), nil
}

// pageLimit returns how many items a page may have: the parameter, at most 1000.
func pageLimit(q *request, param string) (int, *apiError) {
	v := q.query.Get(param)
	if v == "" {
		return 1000, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 0, invalid("Invalid %s '%s'.", param, v)
	}
	return min(n, 1000), nil
}
