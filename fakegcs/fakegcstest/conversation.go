package fakegcstest

import (
	"bytes"
	"context"
	"crypto/rand"
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
	"time"
)

// conversation is the state of the check of one case.
type conversation struct {
	Target
	folder    string // prefix of the names of all its objects
	name      string // of the object
	ownBucket bool   // Target.Bucket was made for this case
	session   string
	sessions  []string // all started sessions
	multipart bool     // a multipart upload was requested
	saved     map[string]string
	tokens    []string
	made      []byte   // the content generated so far
	unknown   []string // placeholders without a value
}

func newConversation(target Target, name string) *conversation {
	v := &conversation{Target: target, saved: map[string]string{}}
	v.folder = target.Prefix + "conformance/" + name + "/"
	v.name = v.folder + "object"
	if v.Client == nil {
		v.Client = http.DefaultClient
	}
	client := *v.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	v.Client = &client
	if v.Patience == 0 {
		v.Patience = 5 * time.Second
	}
	return v
}

// content returns the first n bytes of the content.
func (v *conversation) content(n int) []byte {
	if n > len(v.made) {
		v.made = Content(n)
	}
	return v.made[:n]
}

// escape returns a value in the form that a path or a query needs.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func plain(s string) string { return s }

var placeholder = regexp.MustCompile(`\{(\w+)(?::(\d+))?\}`)

// expand replaces the placeholders in s by their values, each in the given form.
func (v *conversation) expand(s string, form func(value string) string) string {
	return placeholder.ReplaceAllStringFunc(s, func(m string) string {
		parts := placeholder.FindStringSubmatch(m)
		kind := parts[1]
		if parts[2] != "" {
			n, _ := strconv.Atoi(parts[2])
			switch kind {
			case "pad":
				return strings.Repeat("x", max(0, n-len(v.name)))
			case "crc32c", "md5", "md5hex":
				return form(hashOf(kind, v.content(n)))
			case "token":
				return form(v.token(n))
			}
			v.unknown = append(v.unknown, m)
			return m
		}
		switch kind {
		case "object":
			return escape(v.name)
		case "name":
			return form(v.name)
		case "bucket":
			return form(v.Bucket)
		case "project":
			return form(v.Project)
		case "session":
			return v.session
		}
		if value, ok := v.saved[kind]; ok {
			return form(value)
		}
		v.unknown = append(v.unknown, m)
		return m
	})
}

// token returns a random token, another one for each n.
func (v *conversation) token(n int) string {
	for len(v.tokens) <= n {
		v.tokens = append(v.tokens, rand.Text())
	}
	return v.tokens[n]
}

// take sends a step and compares the reply.
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
		err = v.compare(s, resp, body)
		switch {
		case len(v.unknown) > 0:
			return fmt.Errorf("the case has no value for %s", strings.Join(v.unknown, ", "))
		case err == nil || !s.Settle || time.Now().After(deadline):
			return errors.Join(err, v.save(s, resp, body))
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
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
	target = v.expand(target, escape)
	if strings.HasPrefix(target, "/") {
		target = v.URL + target
	}
	content := []byte(v.expand(s.Body, plain))
	if s.Body == "" {
		content = v.content(s.To)[s.From:]
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	if s.Chunks {
		req.ContentLength = -1
	}
	for _, h := range s.Header {
		name, value, _ := strings.Cut(v.expand(h, plain), ": ")
		req.Header.Set(name, value)
	}
	return req, nil
}

// send sends the request of a step. It repeats a request that gets 429, because the
// service allows one change of an object per second,
// https://cloud.google.com/storage/quotas#objects. No case is about rates.
func (v *conversation) send(ctx context.Context, s Step) (*http.Response, string, error) {
	deadline := time.Now().Add(v.Patience)
	for pause := time.Second; ; pause *= 2 {
		resp, body, err := v.sendOnce(ctx, s)
		if err != nil || resp.StatusCode != http.StatusTooManyRequests || s.Status == http.StatusTooManyRequests || time.Now().Add(pause).After(deadline) {
			return resp, body, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, "", err
		}
	}
}

func (v *conversation) sendOnce(ctx context.Context, s Step) (*http.Response, string, error) {
	req, err := v.request(ctx, s)
	if err != nil {
		return nil, "", err
	}
	v.multipart = v.multipart || req.URL.Query().Has("uploads")
	resp, err := v.Client.Do(req)
	if err != nil {
		// The URL of a session is a secret. The error of the step names the step.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, "", err
	}
	defer resp.Body.Close()
	if location := resp.Header.Get("Location"); location != "" {
		if v.session == "" {
			v.session = location
		}
		v.sessions = append(v.sessions, location)
	}
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func (v *conversation) compare(s Step, resp *http.Response, body string) error {
	var errs []error
	differ := func(what string, got, want any) {
		errs = append(errs, fmt.Errorf("%s is %v, want %v", what, got, want))
	}
	if resp.StatusCode != s.Status {
		differ("status", fmt.Sprintf("%d (%.200s)", resp.StatusCode, body), s.Status)
	}
	got := resp.Header.Get("Range")
	switch s.Range {
	case "":
	case "none":
		if got != "" {
			differ("Range", strconv.Quote(got), "no header")
		}
	default:
		if got != "bytes=0-"+s.Range {
			differ("Range", strconv.Quote(got), "bytes=0-"+s.Range)
		}
	}
	if s.Text != "" && body != s.Text {
		differ("body", strconv.Quote(body), strconv.Quote(s.Text))
	}
	for _, m := range s.Match {
		pattern, not := strings.CutPrefix(m, "!")
		pattern = v.expand(pattern, regexp.QuoteMeta)
		switch matches := regexp.MustCompile(pattern).MatchString(body); {
		case !matches && !not:
			differ("body", strconv.Quote(body), "a match of "+pattern)
		case matches && not:
			differ("body", strconv.Quote(body), "no match of "+pattern)
		}
	}
	for _, h := range s.Has {
		name, want, _ := strings.Cut(v.expand(h, plain), ": ")
		name, not := strings.CutPrefix(name, "!")
		values := resp.Header.Values(name)
		switch {
		case not && len(values) > 0:
			differ(name, strconv.Quote(strings.Join(values, ", ")), "no header")
		case not:
		case want == "*" && len(values) == 0, want != "*" && !containsValue(values, want):
			differ(name, strconv.Quote(strings.Join(values, ", ")), want)
		}
	}
	return errors.Join(errs...)
}

// containsValue reports whether a header has a value, even in a comma-separated list.
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

// save saves the parts of a reply that later steps need.
func (v *conversation) save(s Step, resp *http.Response, body string) error {
	if len(s.Save) == 0 {
		return nil
	}
	var text strings.Builder
	_ = resp.Header.Write(&text) // never fails
	text.WriteString("\r\n" + body)
	for _, entry := range s.Save {
		name, pattern, _ := strings.Cut(entry, "=")
		m := regexp.MustCompile(pattern).FindStringSubmatch(text.String())
		if m == nil {
			return fmt.Errorf("no %s in the reply: %q has no match of %s", name, text.String(), pattern)
		}
		v.saved[name] = m[1]
	}
	return nil
}

// cut sends the first bytes of a request and closes the connection.
func (v *conversation) cut(ctx context.Context, s Step) error {
	req, err := v.request(ctx, s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Close the connection in order, so that the written bytes arrive. Canceling the
	// request would not guarantee that.
	var conn net.Conn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conn = i.Conn }})
	req.Body = io.NopCloser(io.MultiReader(bytes.NewReader(v.content(s.To)[s.From:s.From+s.Cut]), readerFunc(func([]byte) (int, error) {
		time.Sleep(50 * time.Millisecond) // until the transport has sent its buffered bytes
		_ = conn.Close()
		return 0, io.ErrUnexpectedEOF
	})))
	resp, err := v.Client.Do(req.WithContext(ctx))
	if err == nil {
		resp.Body.Close()
		return fmt.Errorf("the request that was cut off got a reply: %s", resp.Status)
	}
	return nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// object compares the object at the end with the expected one.
func (v *conversation) object(ctx context.Context, c Case) error {
	resp, body, err := v.send(ctx, Step{Method: "GET", Path: "/storage/v1/b/{bucket}/o/{object}?alt=media"})
	if err != nil {
		return err
	}
	switch {
	case c.None && resp.StatusCode != http.StatusNotFound:
		return fmt.Errorf("at the end there is an object of %d bytes (%s), want none", len(body), resp.Status)
	case c.None:
		return nil
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("at the end, read the object: %s %.200s", resp.Status, body)
	case body != string(v.content(c.Size)):
		return fmt.Errorf("at the end the object has %d bytes with crc32c %08x, want the content's first %d", len(body), crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)), c.Size)
	}
	return nil
}
