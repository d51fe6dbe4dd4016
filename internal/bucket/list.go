package bucket

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gcsup/internal/checksum"
	"gcsup/internal/objectmeta"
	"gcsup/session"
)

// PageMax is the largest number of objects on a page of a listing. The service
// returns it by default: https://cloud.google.com/storage/docs/json_api/v1/objects/list.
const PageMax = 1000

// listFields are the fields that List requests. gsutil selects metadata keys in the
// same way. The longest name needs 6 KiB of JSON, so that a page of such names is
// shorter than listLimit.
const (
	listFields = "items(name,size,crc32c,generation,timeCreated," + metadataFields + "),nextPageToken"
	listLimit  = 16 << 20

	prefixFields = ",prefixes" // if there is a delimiter
)

// Query selects a page of a listing. Bucket is required.
type Query struct {
	Bucket      string
	Prefix      string // only names that begin with it
	StartOffset string // only names that are equal or greater
	Delimiter   string // if a name has it after Prefix, the page has the name up to it in Prefixes instead
	PageToken   string // Page.NextPageToken of the previous page; the other fields must be the same
	MaxResults  int    // 0 means PageMax
	UserProject string // project that is billed, for requester-pays buckets
}

// Page is a page of a listing. Its objects are in the order of the raw bytes
// of their names. They have the fields Bucket, Name, Generation, Size, CRC32C,
// Created, FileModTime, Gzip and UncompressedSize.
type Page struct {
	Objects []session.Object

	// Prefixes are the beginnings of names, up to Query.Delimiter, in the same order.
	Prefixes []string

	// NextPageToken is for the query of the next page. It is "" on the last
	// page. A page without objects need not be the last.
	NextPageToken string
}

// List reads one page of the objects in a bucket. The page is nil if the reply
// has none; the reply shows why.
func List(ctx context.Context, client *session.Client, query Query) (*Page, session.Reply) {
	limit := cmp.Or(max(query.MaxResults, 0), PageMax)
	fields := listFields
	if query.Delimiter != "" {
		fields += prefixFields
	}
	q := url.Values{
		"fields": {fields}, "maxResults": {strconv.Itoa(limit)}, "prefix": {query.Prefix}, "startOffset": {query.StartOffset}, "delimiter": {query.Delimiter},
		"pageToken": {query.PageToken}, "userProject": {query.UserProject},
	}
	var page *Page
	x := request(OpList, http.MethodGet, q, "b", query.Bucket, "o")
	x.Read = func(r *session.Reply, resp *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(resp.Body, listLimit+1))
		if err != nil {
			return fmt.Errorf("read the listing: %w", err)
		}
		if page, err = parsePage(query.Bucket, text); err != nil {
			err = fmt.Errorf("read the listing: %w", err)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return err // the connection was cut
		}
		r.Err = err
		return nil
	}
	reply := client.Do(ctx, x)
	return page, reply
}

// listItem is an object as a listing describes it.
type listItem struct {
	Name       string  `json:"name"`
	Size       decimal `json:"size"`
	Generation decimal `json:"generation"`
	CRC32C     string  `json:"crc32c"`

	Created  time.Time      `json:"timeCreated"`
	Encoding string         `json:"contentEncoding"`
	Metadata objectMetadata `json:"metadata"`
}

// objectMetadata is the custom metadata that a Page has.
type objectMetadata struct {
	FileModTime      string `json:"goog-reserved-file-mtime"`
	UncompressedSize string `json:"gcsup-uncompressed-size"`
}

// metadataFields selects the fields of an objectMetadata, and the content encoding,
// in a request.
const metadataFields = "contentEncoding,metadata/" + objectmeta.FileModTime + ",metadata/" + objectmeta.UncompressedSize

// decimal is an integer that is a string or a number in JSON.
type decimal int64

// UnmarshalJSON parses "123" and 123.
func (d *decimal) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err != nil {
		return err
	}
	*d = decimal(n)
	return nil
}

// parsePage parses the body of a page of the objects in a bucket. If the body is the
// beginning of a page, the error is io.ErrUnexpectedEOF.
func parsePage(bucket string, body []byte) (*Page, error) {
	if len(body) > listLimit {
		return nil, fmt.Errorf("more than %d bytes", listLimit)
	}
	var list struct {
		Items         []listItem `json:"items"`
		Prefixes      []string   `json:"prefixes"`
		NextPageToken string     `json:"nextPageToken"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Offset >= int64(len(body)) {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
	page := &Page{Objects: make([]session.Object, len(list.Items)), Prefixes: list.Prefixes, NextPageToken: list.NextPageToken}
	for i, item := range list.Items {
		if item.Name == "" || item.Size < 0 {
			return nil, errors.New("an object has no name, or a negative size")
		}
		o := &page.Objects[i]
		o.Bucket, o.Name, o.Size, o.Generation = bucket, item.Name, int64(item.Size), int64(item.Generation)
		if crc, err := checksum.Decode(item.CRC32C); err == nil {
			o.CRC32C, o.HasCRC32C = crc, true
		}
		o.Created, o.FileModTime = item.Created, objectmeta.ParseFileModTime(item.Metadata.FileModTime)
		o.UncompressedSize, o.Gzip = objectmeta.ParseGzip(item.Encoding, item.Metadata.UncompressedSize)
	}
	return page, nil
}
