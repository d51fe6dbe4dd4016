// Package fakegcstest states the behavior of Cloud Storage as data, and checks a
// server against it: fakegcs, another emulator, or the real service. The facts
// are about
//
//   - uploads: resumable ones, with their failures, and those in one request;
//   - requests that are repeated with an idempotency token;
//   - objects: metadata, names, preconditions, reading, listing, copying,
//     composing, customer-supplied keys;
//   - protection: holds, retention policies, object versioning, soft delete;
//   - buckets, and requests for a project;
//   - the XML API and its multipart uploads;
//   - errors, in the JSON and in the XML form.
//
// Each names its source: the documentation of the service, a recording of its replies, or
// a report of its behavior.
//
// A test calls [Run]:
//
//	func TestConformance(t *testing.T) {
//		fakegcstest.Run(t, func(t *testing.T) fakegcstest.Target {
//			srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
//			return fakegcstest.Target{URL: srv.URL, Bucket: "bkt", Project: "any"}
//		})
//	}
//
// [CheckClient] is about the other side: it finds the faults of a client.
//
// [Cases] returns the data, and [Case.Check] checks a target against one case outside
// of a test. A case makes about ten requests, and uploads up to 5 MiB. For the real
// service, set a Client with credentials and a Patience of 30 s. All cases together
// cost about a cent there.
//
// Some cases need a bucket with a certain configuration, and create one in
// [Target.Project]. A case always deletes everything that it made: objects with all
// their generations, holds and retention policies on them, upload sessions, multipart
// uploads, and the bucket. Only soft delete keeps objects, for seven days: in the
// target's bucket, if it has soft delete, and in the buckets of the cases about soft
// delete.
package fakegcstest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Granularity is the unit of 256 KiB in which the service commits an upload.
const Granularity = 256 << 10

// ErrNotChecked reports that a case was not checked: it needs a bucket of its
// own, and [Target.Project] is not set, or no bucket can be created there.
var ErrNotChecked = errors.New("not checked")

// Target is a server to check.
type Target struct {
	URL    string       // scheme and host, without a path
	Bucket string       // exists, and objects in it may be written and deleted
	Prefix string       // of the object names; "" is valid if no other client writes
	Client *http.Client // adds credentials if they are needed; nil is http.DefaultClient
	// Project is where cases that need a bucket of their own create it; its name consists
	// of Bucket and random letters. An emulator accepts any. With "", such cases fail with
	// [ErrNotChecked].
	Project string
	// Patience is the time in which a query must return the final offset after a request
	// was cut off, and for which a step that gets 429 is retried. 0 is 5 s. The real
	// service needs 30 s, because it allows one change of an object per second.
	Patience time.Duration
}

// Case is one fact, with requests and replies that show it. Each case has an object
// name of its own. Requests and expected replies may have placeholders:
//
//	{object}   that name, escaped; the text after it is part of the name, so that
//	           a case can have several objects
//	{name}     the same, not escaped
//	{pad:N}    as many letters as {name} lacks to have N bytes
//	{bucket}   the bucket, {project} the project
//	{session}  the session URI, from the first reply with a Location
//	{crc32c:N} {md5:N} {md5hex:N}
//	           hashes of the content's first N bytes
//	{token:N}  a random text, another one for each N
//	{...}      a value that a step has saved under this name
//
// In a path, values are escaped. A placeholder without a value fails the case.
type Case struct {
	Name   string // unique
	Fact   string
	Source string // URL, or a description of the observation
	// Bucket, if set, is the configuration of a bucket for this case only, in JSON and
	// without a name. {bucket} is then that bucket. Soft delete is off, unless the
	// configuration has it.
	Bucket string
	Steps  []Step
	Size   int  // of the object at the end, which has the bytes Content(Size); see None
	None   bool // at the end there is no object with exactly that name
}

// Step is a request and the expected reply.
type Step struct {
	Method string   // default PUT
	Path   string   // default {session}
	Header []string // "Name: value"
	From   int      // the body is content[From:To]
	To     int
	Body   string // replaces content[From:To] if it is not ""
	Chunks bool   // send it without Content-Length
	Cut    int    // send that many bytes of the body, then break the connection; there is no reply
	Settle bool   // a query after a cut: repeat it until the reply is the expected one

	Status int
	Range  string   // of the reply: the last committed byte; "none" for no header, "" to ignore it
	Text   string   // the exact body
	Has    []string // each "Name: value" is a header of the reply; "*" is any value, and "!Name" must be missing
	Match  []string // regular expressions that the body must match, or must not match after "!"
	// Save keeps parts of the reply: "x=regexp" makes {x} of the first group of
	// the match in the reply's header lines and body.
	Save []string
}

// Content returns the first n bytes that the cases upload.
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

// Run checks all cases, each against a server from newServer. Cases run one after
// the other, so that newServer may return the same server each time. It must set
// Project; without it, the cases that need it fail.
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

// Check compares target with c and returns the first difference. If there is no
// bucket for a case that needs its own, the error wraps [ErrNotChecked]. Check
// deletes everything that it made, even if ctx ends. The error names the resources
// that it could not delete.
func (c Case) Check(ctx context.Context, target Target) (err error) {
	if target.Project == "" && c.needsProject() {
		return fmt.Errorf("case %s: %w: it needs a project; set Target.Project", c.Name, ErrNotChecked)
	}
	v := newConversation(target, c.Name)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute+v.Patience)
		defer cancel()
		if cleanErr := v.cleanUp(ctx); cleanErr != nil {
			err = errors.Join(err, fmt.Errorf("clean up: %w", cleanErr))
		}
	}()
	if c.Bucket != "" {
		if err := v.makeBucket(ctx, c.Bucket); err != nil {
			return fmt.Errorf("create a bucket: %w", err)
		}
	}
	for i, step := range c.Steps {
		if err := v.take(ctx, step); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, step, err)
		}
	}
	return v.object(ctx, c)
}

func (c Case) needsProject() bool {
	if c.Bucket != "" {
		return true
	}
	for _, s := range c.Steps {
		if strings.Contains(strings.Join(append([]string{s.Path, s.Body}, s.Header...), "\n"), "{project}") {
			return true
		}
	}
	return false
}

// String returns a short form of the request.
func (s Step) String() string {
	method, path := s.Method, s.Path
	if method == "" {
		method = http.MethodPut
	}
	if path == "" {
		path = "{session}"
	}
	return strings.Join(append([]string{method, path}, s.Header...), " ")
}
