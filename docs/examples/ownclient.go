package examples

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// OwnClient is a resumable client in a page, as a program without a library may have one. Its test
// checks it with package fakegcstest.
type OwnClient struct {
	HTTP     *http.Client // must follow no redirects, and have a timeout for a request
	Endpoint string
	Chunk    int // a multiple of 256 KiB
}

var errSessionLost = errors.New("the session is lost")

// Upload uploads data. It starts over if the service lost the session.
func (c *OwnClient) Upload(ctx context.Context, bucket, object string, data []byte) error {
	for range 3 {
		err := c.session(ctx, bucket, object, data)
		if !errors.Is(err, errSessionLost) {
			return err
		}
	}
	return errSessionLost
}

// session uploads data in one session.
func (c *OwnClient) session(ctx context.Context, bucket, object string, data []byte) error {
	start := c.Endpoint + "/upload/storage/v1/b/" + bucket + "/o?uploadType=resumable&name=" + url.QueryEscape(object)
	uri := ""
	query := false // ask for the committed offset, instead of sending data
	for offset, failures := 0, 0; failures < 8; {
		end := min(offset+c.Chunk, len(data))
		method, target, contentRange, chunk := http.MethodPut, uri, fmt.Sprintf("bytes */%d", len(data)), []byte(nil)
		switch {
		case uri == "":
			method, target, contentRange = http.MethodPost, start, ""
		case !query && offset < len(data):
			contentRange, chunk = fmt.Sprintf("bytes %d-%d/%d", offset, end-1, len(data)), data[offset:end]
		}
		resp, body, err := c.do(ctx, method, target, contentRange, checksum(data), chunk)
		service := err == nil && resp.Header.Get("X-Guploader-Uploadid") != "" // not a proxy
		switch {
		case service && uri == "" && resp.StatusCode == 200:
			uri = resp.Header.Get("Location")
			continue
		case service && resp.StatusCode == 308:
			next, _ := strconv.Atoi(strings.TrimPrefix(resp.Header.Get("Range"), "bytes=0-"))
			if resp.Header.Get("Range") != "" {
				next++
			}
			if failures++; next > offset {
				failures = 0
			}
			if next > end && !query {
				return fmt.Errorf("the service has %d bytes, %d were sent", next, end)
			}
			offset, query = next, false
			continue
		case service && resp.StatusCode/100 == 2:
			var made struct{ CRC32C string }
			if json.Unmarshal(body, &made) == nil {
				if made.CRC32C != checksum(data) {
					return errors.New("the object is damaged")
				}
				return nil
			}
		case service && (resp.StatusCode == 404 || resp.StatusCode == 410) && uri != "":
			return errSessionLost
		case service && resp.StatusCode/100 == 4 && resp.StatusCode != 408 && resp.StatusCode != 429:
			return fmt.Errorf("%s: %s", resp.Status, body)
		}
		query = uri != ""
		failures++
		select {
		case <-time.After(time.Duration(failures*failures) * 10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("too many failures")
}

// do makes a request. crc is the checksum of the whole object.
func (c *OwnClient) do(ctx context.Context, method, target, contentRange, crc string, chunk []byte) (
	*http.Response, []byte, error,
) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(chunk))
	if err != nil {
		return nil, nil, err
	}
	if contentRange != "" {
		req.Header.Set("Content-Range", contentRange)
		req.Header.Set("X-Goog-Hash", "crc32c="+crc)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func checksum(data []byte) string {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}
