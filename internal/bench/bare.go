package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"gcsup/fakegcs"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// barePut uploads a body to the bucket bench at the minimum cost of a checked upload: one request without
// a session, whose body is read, hashed and sent by one goroutine.
func barePut(ctx context.Context, hc *http.Client, endpoint, object string, body io.Reader, size int64) error {
	sum := crc32.New(castagnoli)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/upload/storage/v1/b/bench/o?uploadType=media&name="+url.QueryEscape(object), io.TeeReader(body, sum))
	if err != nil {
		return err
	}
	req.ContentLength = size
	resp, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var stored struct{ CRC32C fakegcs.CRC32C }
	if err := json.NewDecoder(resp.Body).Decode(&stored); err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	if want := fakegcs.CRC32C(sum.Sum32()); stored.CRC32C != want {
		return fmt.Errorf("%s: CRC32C %s, want %s", resp.Status, stored.CRC32C, want)
	}
	return nil
}

// inserter uploads small objects to the bucket bench at the minimum cost of a checked upload: one request with
// its checksum. All requests have the same header, and their bodies are written into buffers that are used again.
type inserter struct {
	transport *http.Transport
	target    *url.URL // without the name of the object
	header    http.Header
	buffers   sync.Pool // of *[]byte
}

// insertHead is the part of a body before the data. The CRC32C in it is replaced when the data is read.
const (
	insertBoundary = "b0b0b0b0b0b0b0b0"
	insertHead     = "--" + insertBoundary + "\r\nContent-Type: application/json\r\n\r\n{\"crc32c\":\"AAAAAA==\"}\r\n--" +
		insertBoundary + "\r\nContent-Type: application/octet-stream\r\n\r\n"
	insertTail = "\r\n--" + insertBoundary + "--\r\n"
)

func newInserter(endpoint string) (*inserter, error) {
	target, err := url.Parse(endpoint + "/upload/storage/v1/b/bench/o")
	return &inserter{
		transport: newTransport(),
		target:    target,
		header:    http.Header{"Content-Type": {"multipart/related; boundary=" + insertBoundary}},
		buffers:   sync.Pool{New: func() any { return new([]byte) }},
	}, err
}

// insert uploads the bytes that read writes into a buffer.
func (i *inserter) insert(ctx context.Context, object string, size int64, read func([]byte) error) error {
	buffer := i.buffers.Get().(*[]byte)
	body := slices.Grow((*buffer)[:0], len(insertHead)+int(size)+len(insertTail))
	body = append(body, insertHead...)[:len(insertHead)+int(size)]
	data := body[len(insertHead):]
	if err := read(data); err != nil {
		return err
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli))
	base64.StdEncoding.Encode(body[strings.Index(insertHead, "AAAAAA=="):], sum)
	body = append(body, insertTail...)
	*buffer = body

	target := *i.target
	target.RawQuery = "uploadType=multipart&name=" + url.QueryEscape(object)
	req := (&http.Request{Method: http.MethodPost, URL: &target, Header: i.header, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body))}).WithContext(ctx)
	resp, err := i.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", object, resp.Status)
	}
	i.buffers.Put(buffer) // the server has all of it
	return nil
}
