// Package fakegcstest states as data how Cloud Storage answers, and holds a
// server against it: fakegcs, another emulator, or the real service. The facts
// are about
//
//   - uploads: resumable ones, with all that can go wrong, and those in one
//     request;
//   - objects: metadata, names, preconditions, reading, listing, copying,
//     composing, customer-supplied keys;
//   - what is kept: holds, retention policies, object versioning, soft delete;
//   - buckets, and requests for a project;
//   - the XML API and its multipart uploads;
//   - errors, in the JSON and in the XML form.
//
// Each says where it was found: in the documentation of the service, or with
// somebody who has seen the service answer so.
//
// A test calls [Run]:
//
//	func TestConformance(t *testing.T) {
//		fakegcstest.Run(t, func(t *testing.T) fakegcstest.Target {
//			gcs, err := fakegcs.New(nil) // ... httptest.NewServer(gcs) ...
//			return fakegcstest.Target{URL: srv.URL, Bucket: "bkt", Project: "any"}
//		})
//	}
//
// [Cases] is the data, and [Case.Check] holds a target against one case without
// the testing package. The checks use the network as any client does, about ten
// requests for a case, and uploads of up to 5 MiB. Whoever holds the real
// service against them gives a Client with credentials and a Patience of 30 s.
// All of them together cost about a cent there.
//
// Some cases need a bucket that is configured in a certain way, and make one of
// their own; [Target.Project] says where. Whatever becomes of a case, it takes
// away what it made: objects with all their generations, holds and retention
// policies on them, upload sessions, multipart uploads, and the bucket. Nothing
// stays, except for what soft delete keeps, which nobody can take away: in the
// target's bucket, if that has soft delete, and the buckets of the cases about
// soft delete, for seven days.
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

// Quantum is the unit of 256 KiB in which the service commits an upload.
const Quantum = 256 << 10

// ErrNotChecked means that a case says nothing about the target: it needs a
// bucket of its own, and [Target.Project] is not set, or no bucket can be made
// there.
var ErrNotChecked = errors.New("not checked")

// Target is a server to hold against the cases.
type Target struct {
	URL    string       // scheme and host, without a path
	Bucket string       // exists, and objects in it may be written and deleted
	Prefix string       // of the object names; "" is fine where nobody else writes
	Client *http.Client // adds credentials where they are needed; nil is http.DefaultClient
	// Project is where cases that need a bucket of their own make it; its name
	// is made of Bucket and random letters. An emulator takes any. "" means
	// that such cases can't be checked, see [ErrNotChecked].
	Project string
	// Patience is how long a server may take until a query gives the final
	// offset of a request that was cut off, and how long a step that is
	// refused with 429 is tried again. 0 is 5 s; the real service, which allows
	// one change of an object per second, wants 30 s.
	Patience time.Duration
}

// Case is one fact, as a conversation that shows it. Each case has an object
// name of its own. In what is sent and expected stand
//
//	{object}   for that name, escaped; what follows is part of the name, so
//	           that a case has as many objects as it likes
//	{name}     for the same, not escaped
//	{pad:N}    for as many letters as {name} lacks to have N bytes
//	{bucket}   for the bucket, {project} for the project
//	{session}  for the session URI that the first reply with a Location gave
//	{crc32c:N} {md5:N} {md5hex:N}
//	           for hashes of the content's first N bytes
//	{...}      for what a step has saved under this name
//
// In a path, values are escaped. What has no value fails the case.
type Case struct {
	Name   string // unique
	Fact   string
	Source string // URL, or where it was seen
	// Bucket, if set, makes a bucket for this case alone, which {bucket} then
	// stands for: the JSON of its configuration, without a name. Soft delete
	// is off unless it is in there.
	Bucket string
	Steps  []Step
	Size   int  // of the object at the end, with the content's first Size bytes; see None
	None   bool // there is no object of that very name at the end
}

// Step is a request and the reply that is expected.
type Step struct {
	Method string   // default PUT
	Path   string   // default {session}
	Header []string // "Name: value"
	From   int      // the body is content[From:To]
	To     int
	Body   string // or this
	Chunks bool   // send it without Content-Length
	Cut    int    // send so many bytes of the body, then break the connection; there is no reply
	Settle bool   // a query after a cut: ask again until the reply is the expected one

	Status int
	Range  string   // of the reply: the last committed byte; "none" for no header, "" for don't care
	Text   string   // the exact body
	Has    []string // each "Name: value" is a header of the reply; a value "*" only has to be there, and "!Name" must not
	Match  []string // regular expressions that the body matches, or doesn't when it begins with "!"
	// Save keeps parts of the reply: "x=regexp" makes {x} of the first group of
	// the match in the reply's header lines and body.
	Save []string
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
// Cases run one after the other: newServer may give the same one each time. It
// has to give a Project; without it, the cases that need one fail.
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

// Check holds target against c and tells the first difference. It returns an
// error that wraps [ErrNotChecked] when there is no bucket for a case that needs
// its own. It takes away all that it made, also when ctx ends meanwhile; what it could
// not take away is part of the error.
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
			return fmt.Errorf("make a bucket: %w", err)
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

// String is the request in short.
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
