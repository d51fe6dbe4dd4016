package clientcheck

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A bug is a mistake that the naive client makes on purpose.
type bug int

const (
	none             bug = iota
	silenceIsSuccess     // takes a 308 without Range for success
	emptyIsOneByte       // sends an empty object as bytes 0-0/0
	offByOne             // sends the last committed byte again, under the offset of the next one
	ignoresRange         // continues after what it sent, whatever the service kept
	assumesKept          // continues after what it sent, even if the request failed
	emptyLastChunk       // sends a last chunk without bytes, under a malformed Content-Range
	oddChunks            // sends chunks that are no multiple of 256 KiB
	givesUpOn503         // and on every other 5xx
	givesUpOn429         //
	givesUpOn408         //
	givesUpAtStart       // on any failure of the start
	givesUpOnBreaks      // on a broken connection
	wantsJSON            // gives up on an error whose body is not JSON
	noTimeout            // waits for a stalled service
	lastIsLost           // gives up if the reply to the last request is lost
	asksDeadSession      // retries a session that is gone, always
	givesUpOnGone        // on 404 and 410
	readsInside          // retries a 410 whose body has 429
	believes200          // takes any 200 for success
	believes404          // takes any 404 for one of the service
	noChecksum           // declares and compares none
	mixesSources         // resumes without a look at the source
	triesWithout         // after 412, uploads without the precondition
	swallows             // reports success, whatever happened
	forgetsTotal         // after a 308 with all bytes, sends a chunk without bytes
)

// naive is a small client that sends one file in chunks. It is right, except for its bug.
type naive struct {
	bug   bug
	http  *http.Client
	task  Task
	data  []byte
	chunk int64
	match bool // the precondition ifGenerationMatch=0
}

const (
	naiveChunk    = 2 * Granularity
	naiveAttempts = 6
)

// client returns the client with a bug.
func client(b bug) Client {
	return func(ctx context.Context, t Task) error {
		transport := &http.Transport{}
		if t.CA != "" {
			pem, err := os.ReadFile(t.CA)
			if err != nil {
				return err
			}
			transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
			transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
		}
		defer transport.CloseIdleConnections()
		n := &naive{bug: b, task: t, chunk: naiveChunk, match: b == triesWithout}
		n.http = &http.Client{
			Transport: transport, Timeout: 3 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		if b == noTimeout {
			n.http.Timeout = 0
		}
		if b == oddChunks {
			n.chunk = 300_000
		}
		var err error
		if n.data, err = os.ReadFile(t.File); err == nil {
			err = n.run(ctx)
		}
		if b == swallows && ctx.Err() == nil {
			return nil
		}
		return err
	}
}

// errLost reports that the session is gone.
var errLost = errors.New("the session is gone")

func (n *naive) run(ctx context.Context) error {
	for range 4 {
		uri, resumed, err := n.session(ctx)
		if err != nil {
			return err
		}
		err = n.send(ctx, uri, resumed)
		if err == nil || ctx.Err() == nil {
			_ = os.Remove(n.saved())
		}
		if !errors.Is(err, errLost) {
			return err
		}
	}
	return errLost
}

func (n *naive) saved() string { return filepath.Join(n.task.Dir, "session") }

func (n *naive) sum() string {
	if n.bug == mixesSources {
		return ""
	}
	return crc(n.data)
}

func crc(p []byte) string {
	sum := crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// session returns the session of an earlier run, or starts one.
func (n *naive) session(ctx context.Context) (uri string, resumed bool, err error) {
	if saved, err := os.ReadFile(n.saved()); err == nil {
		uri, sum, _ := strings.Cut(string(saved), "\n")
		if sum == n.sum() {
			return uri, true, nil
		}
	}
	start := n.task.Endpoint + "/upload/storage/v1/b/" + n.task.Bucket + "/o?uploadType=resumable&name=" +
		url.QueryEscape(n.task.Object)
	if n.match {
		start += "&ifGenerationMatch=0"
	}
	for attempt := 0; ; attempt++ {
		r, err := n.do(ctx, http.MethodPost, start, "", nil)
		if err == nil && r.status == 200 && r.location != "" {
			return r.location, false, os.WriteFile(n.saved(), []byte(r.location+"\n"+n.sum()), 0o600)
		}
		if err == nil && !r.retryable() || n.bug == givesUpAtStart || attempt == naiveAttempts {
			return "", false, fmt.Errorf("start: %v, %w", r, err)
		}
		if err := pause(ctx); err != nil {
			return "", false, err
		}
	}
}

// send sends the object on a session.
func (n *naive) send(ctx context.Context, uri string, asks bool) error {
	total := int64(len(n.data))
	offset := int64(0)
	short := false // the latest reply has committed less than was sent
	for attempt := 0; attempt < naiveAttempts || n.bug == asksDeadSession; {
		end := min(offset+n.chunk, total)
		header, body := fmt.Sprintf("bytes %d-%d/%d", offset, end-1, total), n.data[offset:end]
		switch {
		case asks:
			header, body = fmt.Sprintf("bytes */%d", total), nil
		case n.bug == emptyIsOneByte && total == 0:
			header = "bytes 0-0/0"
		case n.bug == emptyLastChunk && end == offset+n.chunk:
			header = fmt.Sprintf("bytes %d-%d/*", offset, end-1)
		case n.bug == emptyLastChunk || n.bug == forgetsTotal:
		case offset == total:
			header = fmt.Sprintf("bytes */%d", total)
		}
		if n.bug == offByOne && short && !asks && offset > 0 {
			body = n.data[offset-1 : end-1]
		}
		last := end == total && !asks
		r, err := n.do(ctx, http.MethodPut, uri, header, body)
		switch {
		case err != nil && (n.bug == givesUpOnBreaks || n.bug == lastIsLost && last):
			return err
		case err == nil && n.bug == believes200 && r.status == 200:
			return nil
		case err == nil && r.status == 308:
			if n.bug == silenceIsSuccess && r.committed == 0 && !asks {
				return nil
			}
			next := r.committed
			if n.bug == ignoresRange && !asks {
				next = end
			}
			short = !asks && next < end
			asks = false
			if next > offset {
				attempt = 0
			} else {
				attempt++
			}
			offset = next
			continue
		case err == nil && r.status/100 == 2 && r.ours:
			var o struct{ Size, CRC32C string }
			if json.Unmarshal(r.body, &o) == nil {
				if !n.checks() || o.Size == strconv.FormatInt(total, 10) && o.CRC32C == crc(n.data) {
					return nil
				}
				return errors.New("the object is damaged")
			}
		case err == nil && (r.status == 404 || r.status == 410) && (r.ours || n.bug == believes404):
			switch {
			case n.bug == givesUpOnGone:
				return fmt.Errorf("%v", r)
			case n.bug == readsInside && bytes.Contains(r.body, []byte("429")), n.bug == asksDeadSession:
			default:
				return errLost
			}
		case err == nil && r.status == 412 && n.bug == triesWithout && n.match:
			n.match = false
			return errLost
		case err == nil && n.bug == wantsJSON && !json.Valid(r.body):
			return fmt.Errorf("%v", r)
		case err == nil && n.fatal(r):
			return fmt.Errorf("%v", r)
		}
		attempt++
		if err := pause(ctx); err != nil {
			return err
		}
		if n.bug == assumesKept && !asks {
			offset = end
		} else {
			asks = n.bug != asksDeadSession
		}
	}
	return errors.New("too many failures")
}

// checks reports whether the client declares and compares checksums.
func (n *naive) checks() bool { return n.bug != noChecksum && n.bug != mixesSources }

// fatal reports whether the upload ends with r.
func (n *naive) fatal(r reply) bool {
	switch {
	case n.bug == givesUpOn503 && r.status/100 == 5:
		return true
	case n.bug == givesUpOn429 && r.status == 429, n.bug == givesUpOn408 && r.status == 408:
		return true
	}
	return r.ours && !r.retryable()
}

// reply is what the client needs of a reply.
type reply struct {
	status    int
	ours      bool // of the service, not of a stranger
	committed int64
	location  string
	body      []byte
}

func (r reply) String() string { return fmt.Sprintf("status %d: %.200s", r.status, r.body) }

func (r reply) retryable() bool {
	return r.status == 408 || r.status == 429 || r.status/100 == 5
}

func (n *naive) do(ctx context.Context, method, target, contentRange string, body []byte) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if contentRange != "" {
		req.Header.Set("Content-Range", contentRange)
		if n.checks() && n.bug != offByOne {
			req.Header.Set("X-Goog-Hash", "crc32c="+crc(n.data))
		}
	}
	resp, err := n.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, location: resp.Header.Get("Location")}
	r.ours = resp.Header.Get("X-Guploader-Uploadid") != ""
	if last, ok := strings.CutPrefix(resp.Header.Get("Range"), "bytes=0-"); ok {
		if r.committed, err = strconv.ParseInt(last, 10, 64); err != nil {
			return r, err
		}
		r.committed++
	}
	r.body, err = io.ReadAll(resp.Body)
	return r, err
}

// pause waits a little, so that a service that fails always does not get thousands of requests.
func pause(ctx context.Context) error {
	select {
	case <-time.After(5 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
