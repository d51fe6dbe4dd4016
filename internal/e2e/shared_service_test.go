//go:build unix

package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

const stateBucket = "state"

// stateObject returns the name of the object of a saved upload.
func stateObject(id string) string { return "uploads/" + id + ".gcsup" }

// leaseService is an emulator that records which process made a request, and which
// process has the lease of an upload.
type leaseService struct {
	service
	gcs *fakegcs.Server

	mu       sync.Mutex
	requests int
	ended    map[string]fakegcs.Request // by number, until they are in the log
	log      []sharedRequest
	leases   map[string][]leaseChange // by ID of the upload
	holder   map[string]int           // by the name of a lease
	sessions map[string]bool          // the secrets of the sessions
	saved    [][]byte                 // the contents that were saved
}

// sharedRequest is a request of a process.
type sharedRequest struct {
	fakegcs.Request
	process    int
	session    string // the secret of its session
	generation int64  // of the object, after the last request of a session
}

// leaseChange is a change of the lease of an upload.
type leaseChange struct {
	time    time.Time
	process int // 0 if it was released
}

func newLeaseService(t *testing.T) *leaseService {
	s := &leaseService{
		ended: map[string]fakegcs.Request{}, leases: map[string][]leaseChange{}, holder: map[string]int{}, sessions: map[string]bool{},
	}
	var err error
	s.gcs, err = fakegcs.New(&fakegcs.Options{CreateBuckets: true, NoMD5: true, KeepRequests: -1, OnRequest: s.note})
	require.NoError(t, err)
	s.service = service{t, serve(t, s).URL}
	t.Cleanup(func() { _ = s.gcs.Close() })
	return s
}

// note keeps a finished request for ServeHTTP.
func (s *leaseService) note(r fakegcs.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[r.UserAgent] = r
}

var leaseName = regexp.MustCompile(`"gcsup-lease":"(\w+)"`)

func (s *leaseService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := sharedRequest{session: r.URL.Query().Get("upload_id")}
	q.process, _ = strconv.Atoi(r.Header.Get("X-Process"))
	s.mu.Lock()
	s.requests++
	number := strconv.Itoa(s.requests)
	s.mu.Unlock()
	r.Header.Set("User-Agent", number)
	if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/b/"+stateBucket+"/") {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failingReader{err}))
		s.mu.Lock()
		s.saved = append(s.saved, body)
		if m := leaseName.FindSubmatch(body); m != nil {
			s.holder[string(m[1])] = q.process
		}
		s.mu.Unlock()
	}
	defer s.finish(w, q, number) // a fault may panic
	s.gcs.ServeHTTP(w, r)
}

// failingReader ends with the error of a body.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return 0, io.EOF
}

// finish logs a request.
func (s *leaseService) finish(w http.ResponseWriter, q sharedRequest, number string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.Request = s.ended[number]
	delete(s.ended, number)
	if u, err := url.Parse(w.Header().Get("Location")); err == nil && q.Op == faults.OpStart {
		q.session = u.Query().Get("upload_id")
	}
	if q.session != "" {
		s.sessions[q.session] = true
	}
	switch o, ok := s.gcs.Object(q.Bucket, q.Object); {
	case q.Bucket == stateBucket && (q.Op == faults.OpInsert || q.Op == faults.OpDelete):
		id := strings.TrimSuffix(strings.TrimPrefix(q.Object, "uploads/"), ".gcsup")
		change := leaseChange{time: time.Now()}
		if ok {
			change.time, change.process = o.Updated, s.holder[o.Metadata["gcsup-lease"]]
		}
		s.leases[id] = append(s.leases[id], change)
	case q.Op == faults.OpFinalize && ok:
		q.generation = o.Generation
	}
	s.log = append(s.log, q)
}

// span returns the bytes that a data request has.
func (q *sharedRequest) span() (from, to int64) {
	if n, _ := fmt.Sscanf(q.ContentRange, "bytes %d-%d/", &from, &to); n == 2 {
		return from, to + 1
	}
	return 0, 0
}

// committed returns the greatest committed offset that a process received.
func (s *leaseService) committed(process int) (offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.log {
		var last int64
		if n, _ := fmt.Sscanf(q.Range, "bytes=0-%d", &last); n == 1 && q.process == process && q.Status != 0 {
			offset = max(offset, last+1)
		}
	}
	return offset
}

// lastChange returns the index of the last change until a moment, or -1.
func lastChange(changes []leaseChange, at time.Time) int {
	last := -1
	for i, c := range changes {
		if !c.time.After(at) {
			last = i
		}
	}
	return last
}

// hasURI reports whether a text has the URI of a session.
func (s *leaseService) hasURI(text string) bool {
	if strings.Contains(text, "upload_id=") {
		return true
	}
	for id := range s.sessions {
		if strings.Contains(text, id) {
			return true
		}
	}
	return false
}

// left returns how many objects are left in the state bucket. They have no upload.
func (s *leaseService) left() int {
	s.t.Helper()
	s.release() // a fault may not have happened yet
	all := s.objects(stateBucket)
	for name, o := range all {
		if o.Size != 0 {
			s.t.Errorf("%s is left in the state bucket, with %d bytes", name, o.Size)
		}
	}
	return len(all)
}

// story lists the changes of leases and the requests with a fault, for a failed test.
func (s *leaseService) story(start time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	type event struct {
		time time.Time
		text string
	}
	var events []event
	for id, changes := range s.leases {
		for _, c := range changes {
			events = append(events, event{c.time, fmt.Sprintf("%s has process %d", id, c.process)})
		}
	}
	for _, q := range s.log {
		events = append(events, event{q.Time, fmt.Sprintf("process %d: %s %s %s: %d %s %s (%d bytes, %v)", q.process, q.Op, q.Object, q.ContentRange, q.Status, q.Range, q.Fault, q.Received, q.Elapsed.Round(time.Millisecond))})
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.time.Compare(b.time) })
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%v %s\n", e.time.Sub(start).Round(time.Millisecond), e.text)
	}
	return b.String()
}
