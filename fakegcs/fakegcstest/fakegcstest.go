// Package fakegcstest states as data how Cloud Storage answers the requests of
// an upload, and holds a server against it: fakegcs, another emulator, or the
// real service.
//
//	func TestConformance(t *testing.T) {
//		fakegcstest.Run(t, func(t *testing.T) fakegcstest.Target {
//			gcs, err := fakegcs.New(nil) // ... httptest.NewServer(gcs) ...
//			return fakegcstest.Target{URL: srv.URL, Bucket: "bkt"}
//		})
//	}
//
// [Cases] is the data; [Case.Check] holds a target against one case without the
// testing package.
package fakegcstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Quantum is the unit of 256 KiB in which the service commits an upload.
const Quantum = 256 << 10

// Target is a server to hold against the cases.
type Target struct {
	URL    string       // scheme and host, without a path
	Bucket string       // exists, and objects in it may be written and deleted
	Prefix string       // of the object names; "" is fine where nobody else writes
	Client *http.Client // adds credentials where they are needed; nil is http.DefaultClient
	// Patience is how long a server may take until a query gives the final
	// offset of a request that was cut off. 0 is 5 s.
	Patience time.Duration
}

// Case is one fact, as a conversation that shows it. Each case has an object
// name of its own; {object} stands for it, escaped, in paths, {bucket} for the
// bucket and {session} for the session URI that the first reply with a Location gave.
type Case struct {
	Name   string // unique
	Fact   string
	Source string // URL, or where it was seen
	Steps  []Step
	Size   int  // of the object at the end, with the content's first Size bytes; see None
	None   bool // there is no object at the end
}

// Step is a request and the reply that is expected.
type Step struct {
	Method string   // default PUT
	Path   string   // default {session}
	Header []string // "Name: value"; {crc32c:N} and {md5:N} stand for hashes of the content's first N bytes
	From   int      // the body is content[From:To]
	To     int
	Body   string // or this
	Chunks bool   // send it without Content-Length
	Cut    int    // send so many bytes of the body, then break the connection; there is no reply
	Settle bool   // a query after a cut: ask again until the reply is the expected one

	Status int
	Range  string   // of the reply: the last committed byte; "none" for no header, "" for don't care
	Text   string   // the exact body
	Has    []string // each "Name: value" is a header of the reply; a value "*" only has to be there
	Match  string   // regular expression that the body matches
}

// Content is the first n bytes that the cases upload.
func Content(n int) []byte {
	p := make([]byte, n)
	x := uint32(2463534242)
	for i := range p {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		p[i] = byte(x)
	}
	return p
}

// Run holds the servers that newServer makes, one per case, against all cases.
// Cases run one after the other: newServer may give the same one each time.
func Run(t *testing.T, newServer func(t *testing.T) Target) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Check(t.Context(), newServer(t)); err != nil {
				t.Errorf("%v\nfact: %s\nsource: %s", err, c.Fact, c.Source)
			}
		})
	}
}

// conversation is the state of a case that is being checked.
type conversation struct {
	Target
	name    string
	session string
}

// Check holds target against c and tells the first difference. It deletes the
// object that it made.
func (c Case) Check(ctx context.Context, target Target) error {
	v := &conversation{Target: target, name: target.Prefix + "conformance/" + c.Name}
	if v.Client == nil {
		v.Client = http.DefaultClient
	}
	client := *v.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	v.Client = &client
	if v.Patience == 0 {
		v.Patience = 5 * time.Second
	}
	defer v.cleanUp(context.WithoutCancel(ctx))
	for i, step := range c.Steps {
		if err := v.take(ctx, step); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return v.object(ctx, c)
}

func (v *conversation) expand(s string) string {
	return v.expandBy(s, func(hash string) string { return hash })
}

// expandBy puts the values for the placeholders into s, hashes in the given
// form.
func (v *conversation) expandBy(s string, form func(hash string) string) string {
	s = strings.NewReplacer("{session}", v.session, "{object}", url.PathEscape(v.name), "{bucket}", v.Bucket).Replace(s)
	return hashPattern.ReplaceAllStringFunc(s, func(m string) string {
		parts := hashPattern.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2])
		return form(hashOf(parts[1], Content(n)))
	})
}

var hashPattern = regexp.MustCompile(`\{(crc32c|md5|md5hex):(\d+)\}`)

func (v *conversation) take(ctx context.Context, s Step) error {
	if s.Cut > 0 {
		return v.cut(ctx, s)
	}
	deadline := time.Now().Add(v.Patience)
	for {
		resp, body, err := v.send(ctx, s)
		if err != nil {
			return err
		}
		if v.session == "" && resp.Header.Get("Location") != "" {
			v.session = resp.Header.Get("Location")
		}
		err = v.compare(s, resp, body)
		if err == nil || !s.Settle || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (v *conversation) request(ctx context.Context, s Step) (*http.Request, error) {
	method, target := s.Method, s.Path
	if method == "" {
		method = http.MethodPut
	}
	if target == "" {
		target = "{session}"
	}
	target = v.expand(target)
	if strings.HasPrefix(target, "/") {
		target = v.URL + target
	}
	content := []byte(v.expand(s.Body))
	if s.Body == "" {
		content = Content(s.To)[s.From:]
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	if s.Chunks {
		req.ContentLength = -1
	}
	for _, h := range s.Header {
		name, value, _ := strings.Cut(v.expand(h), ": ")
		req.Header.Set(name, value)
	}
	return req, nil
}

func (v *conversation) send(ctx context.Context, s Step) (*http.Response, string, error) {
	req, err := v.request(ctx, s)
	if err != nil {
		return nil, "", err
	}
	resp, err := v.Client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func (v *conversation) compare(s Step, resp *http.Response, body string) error {
	var errs []error
	differ := func(what string, got, want any) {
		errs = append(errs, fmt.Errorf("%s %q is %v, want %v", resp.Request.Method+" "+resp.Request.Header.Get("Content-Range"), what, got, want))
	}
	if resp.StatusCode != s.Status {
		differ("status", fmt.Sprintf("%d (%.200s)", resp.StatusCode, body), s.Status)
	}
	got := resp.Header.Get("Range")
	switch s.Range {
	case "":
	case "none":
		if got != "" {
			differ("Range", got, "no header")
		}
	default:
		if got != "bytes=0-"+s.Range {
			differ("Range", got, "bytes=0-"+s.Range)
		}
	}
	if s.Text != "" && body != s.Text {
		differ("body", strconv.Quote(body), strconv.Quote(s.Text))
	}
	if s.Match != "" && !regexp.MustCompile(v.expandBy(s.Match, regexp.QuoteMeta)).MatchString(body) {
		differ("body", strconv.Quote(body), "a match of "+s.Match)
	}
	for _, h := range s.Has {
		name, want, _ := strings.Cut(v.expand(h), ": ")
		values := resp.Header.Values(name)
		all := strings.Join(values, ", ")
		if want == "*" && len(values) == 0 || want != "*" && !containsValue(values, want) {
			differ(name, strconv.Quote(all), want)
		}
	}
	return errors.Join(errs...)
}

// containsValue looks for a header value, also among comma-separated ones.
func containsValue(values []string, want string) bool {
	for _, v := range values {
		if v == want {
			return true
		}
		for part := range strings.SplitSeq(v, ",") {
			if strings.TrimSpace(part) == want {
				return true
			}
		}
	}
	return false
}

// cut sends the beginning of a request and breaks the connection.
func (v *conversation) cut(ctx context.Context, s Step) error {
	req, err := v.request(ctx, s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The connection itself is closed, in order: what was written is to
	// arrive, which cancelling the request would not make sure of.
	var conn net.Conn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conn = i.Conn }})
	req.Body = io.NopCloser(io.MultiReader(bytes.NewReader(Content(s.To)[s.From:s.From+s.Cut]), readerFunc(func([]byte) (int, error) {
		time.Sleep(50 * time.Millisecond) // for what is in the transport's buffer
		_ = conn.Close()
		return 0, io.ErrUnexpectedEOF
	})))
	resp, err := v.Client.Do(req.WithContext(ctx))
	if err == nil {
		resp.Body.Close()
		return fmt.Errorf("the request that was cut off was answered %s", resp.Status)
	}
	return nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// object compares what is there at the end with what should be.
func (v *conversation) object(ctx context.Context, c Case) error {
	resp, body, err := v.send(ctx, Step{Method: "GET", Path: "/storage/v1/b/{bucket}/o/{object}?alt=media"})
	if err != nil {
		return err
	}
	switch {
	case c.None && resp.StatusCode != http.StatusNotFound:
		return fmt.Errorf("there is an object of %d bytes (%s), want none", len(body), resp.Status)
	case c.None:
		return nil
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("read the object: %s %.200s", resp.Status, body)
	case body != string(Content(c.Size)):
		return fmt.Errorf("the object has %d bytes with crc32c %08x, want the content's first %d", len(body), crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)), c.Size)
	}
	return nil
}

func (v *conversation) cleanUp(ctx context.Context) {
	if v.session != "" {
		_, _, _ = v.send(ctx, Step{Method: "DELETE"})
	}
	_, _, _ = v.send(ctx, Step{Method: "DELETE", Path: "/storage/v1/b/{bucket}/o/{object}"})
}
