package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gcsup/fakegcs"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// barePut uploads a body to the bucket bench at the minimum cost of a checked upload: one request without
// a session, whose body is read, hashed and sent by one goroutine.
func barePut(ctx context.Context, hc *http.Client, endpoint, object string, body io.Reader, size int64) error {
	sum := crc32.New(castagnoli)
	resp, err := post(ctx, hc, endpoint+"/upload/storage/v1/b/bench/o?uploadType=media&name="+url.QueryEscape(object), "", io.TeeReader(body, sum), size)
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

// bareInsert uploads data to the bucket bench at the minimum cost of a small object: one request with its
// checksum.
func bareInsert(ctx context.Context, hc *http.Client, endpoint, object string, data []byte) error {
	const boundary = "b0b0b0b0b0b0b0b0"
	head := fmt.Sprintf("--%s\r\nContent-Type: application/json\r\n\r\n{\"name\":%q,\"crc32c\":%q}\r\n--%s\r\nContent-Type: application/octet-stream\r\n\r\n",
		boundary, object, fakegcs.CRC32C(crc32.Checksum(data, castagnoli)).String(), boundary)
	tail := "\r\n--" + boundary + "--\r\n"
	body := io.MultiReader(strings.NewReader(head), bytes.NewReader(data), strings.NewReader(tail))
	resp, err := post(ctx, hc, endpoint+"/upload/storage/v1/b/bench/o?uploadType=multipart&name="+url.QueryEscape(object),
		"multipart/related; boundary="+boundary, body, int64(len(head)+len(data)+len(tail)))
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
	return nil
}

func post(ctx context.Context, hc *http.Client, url, contentType string, body io.Reader, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = size
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return hc.Do(req)
}
