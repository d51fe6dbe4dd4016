//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

const mib = int64(1) << 20

// chance chooses what happens in a test.
type chance struct{ *rand.Rand }

// seeded logs the seed of a test. A seed of 0 means that of [testsize.Seed].
func seeded(t *testing.T, seed uint64) chance {
	if seed == 0 {
		seed = testsize.Seed(t)
	} else {
		t.Logf("seed %d", seed)
	}
	return chance{rand.New(rand.NewPCG(seed, 0))}
}

func (c chance) oneIn(n int) bool { return c.IntN(n) == 0 }

// below returns a duration of less than most.
func (c chance) below(most time.Duration) time.Duration { return time.Duration(c.Int64N(int64(most))) }

// pause sleeps for less than most.
func (c chance) pause(most time.Duration) { time.Sleep(c.below(most)) }

// bytes returns random bytes.
func (c chance) bytes(n int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], c.Uint64())
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

func pick[T any](c chance, list ...T) T { return list[c.IntN(len(list))] }

// fault is what happens to a process in a scene.
type fault[S any] struct {
	name string
	do   func(s S, c *child)
}

// service is an emulator, in this process or in another one.
type service struct {
	t   *testing.T
	url string
}

// object is an object of a listing. A file that must become an object has no generation.
type object struct {
	Name       string `json:"name"`
	Size       int64  `json:"size,string"`
	Generation string `json:"generation"`
	CRC32C     string `json:"crc32c"`
}

// same reports whether an object has the bytes of a file.
func (o object) same(file object) bool { return o.Size == file.Size && o.CRC32C == file.CRC32C }

var errAbsent = errors.New("it does not exist")

// ask makes a request, and reads the reply to a successful one.
func (s *service) ask(method, target, body string, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+target, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return errAbsent
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s", method, target, resp.Status)
	case read == nil:
		return nil
	}
	return read(resp.Body)
}

// must is ask for a request that succeeds.
func (s *service) must(method, target, body string, read func(io.Reader) error) {
	s.t.Helper()
	require.NoError(s.t, s.ask(method, target, body, read))
}

// plant adds faults.
func (s *service) plant(plan ...faults.Fault) {
	s.t.Helper()
	if len(plan) == 0 {
		return
	}
	body, err := json.Marshal(plan)
	require.NoError(s.t, err)
	s.must(http.MethodPost, "/_fakegcs/faults", string(body), nil)
}

// release removes all faults. A request that is held stays held.
func (s *service) release() {
	s.t.Helper()
	s.must(http.MethodDelete, "/_fakegcs/faults", "", nil)
}

// objects returns the objects of a bucket by their names.
func (s *service) objects(bucket string) map[string]object {
	s.t.Helper()
	all := map[string]object{}
	for token := ""; ; {
		var page struct {
			Items         []object
			NextPageToken string
		}
		s.must(http.MethodGet, "/storage/v1/b/"+bucket+"/o?pageToken="+url.QueryEscape(token), "", func(r io.Reader) error { return json.NewDecoder(r).Decode(&page) })
		for _, o := range page.Items {
			all[o.Name] = o
		}
		if token = page.NextPageToken; token == "" {
			return all
		}
	}
}

// put writes an object of random bytes. Faults concern this client, too.
func (s *service) put(c chance, bucket, name string, size int) {
	s.t.Helper()
	target := "/upload/storage/v1/b/" + bucket + "/o?uploadType=media&name=" + url.QueryEscape(name)
	for range 20 {
		if s.ask(http.MethodPost, target, string(c.bytes(size)), nil) == nil {
			return
		}
	}
	s.t.Fatalf("%s cannot be written", name)
}

// compare reports the differences between objects.
func compare(t *testing.T, what string, got, want map[string]object) {
	t.Helper()
	for name, o := range want {
		if got[name] != o {
			t.Errorf("%s: %q is %+v, want %+v", what, name, got[name], o)
		}
	}
	for name, o := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %q is %+v, want none", what, name, o)
		}
	}
}

// identical checks that an object of the bucket demo is absent, or has the bytes of a file. It reports whether
// the object exists.
func (s *service) identical(name, path string) bool {
	s.t.Helper()
	file, err := os.Open(path)
	require.NoError(s.t, err)
	defer file.Close()
	err = s.ask(http.MethodGet, "/storage/v1/b/demo/o/"+url.PathEscape(name)+"?alt=media", "", func(r io.Reader) error { return equal(r, file) })
	if errors.Is(err, errAbsent) {
		return false
	}
	if err != nil {
		s.t.Errorf("%s: %v", name, err)
	}
	return true
}

// equal returns an error if two readers differ.
func equal(got, want io.Reader) error {
	a, b := make([]byte, 256<<10), make([]byte, 256<<10)
	for offset := 0; ; {
		n, err := io.ReadFull(got, a)
		m, _ := io.ReadFull(want, b)
		if !bytes.Equal(a[:n], b[:m]) {
			return fmt.Errorf("its bytes from %d on (%d of them, %v) are not those of the source", offset, n, err)
		}
		if offset += n; err != nil {
			return nil
		}
	}
}

// complete checks that the bucket demo has the objects of all files, byte for byte, and nothing else: no other
// object, and no part of a multipart upload. files has the paths by the names of the objects. The result is that of
// wantNoUploads.
func (s *service) complete(files map[string]string) (empty int) {
	s.t.Helper()
	for name := range s.objects("demo") {
		if _, ok := files[name]; !ok {
			s.t.Errorf("the object %s is left", name)
		}
	}
	for name, path := range files {
		if !s.identical(name, path) {
			s.t.Errorf("the object %s does not exist", name)
		}
	}
	return s.wantNoUploads()
}

// wantNoUploads checks that the bucket demo has no part of a multipart upload. It returns the number of multipart
// uploads without a part: their process was killed before it saved their ID.
func (s *service) wantNoUploads() (empty int) {
	s.t.Helper()
	var uploads struct {
		XMLName xml.Name `xml:"ListMultipartUploadsResult"`
		Upload  []struct {
			Key string
			ID  string `xml:"UploadId"`
		}
	}
	s.must(http.MethodGet, "/demo?uploads", "", func(r io.Reader) error { return xml.NewDecoder(r).Decode(&uploads) })
	for _, u := range uploads.Upload {
		var list struct {
			XMLName xml.Name `xml:"ListPartsResult"`
			Part    []struct{ PartNumber int }
		}
		s.must(http.MethodGet, "/demo/"+u.Key+"?uploadId="+u.ID, "", func(r io.Reader) error { return xml.NewDecoder(r).Decode(&list) })
		if len(list.Part) > 0 {
			s.t.Errorf("a multipart upload with %d parts is left", len(list.Part))
		}
	}
	return len(uploads.Upload)
}

// ledger follows the requests for one object and its parts.
type ledger struct {
	sessions  int
	again     int64 // committed bytes that were sent again, or whose session or upload was abandoned
	discarded int64 // the most bytes of a session that was abandoned because its first bytes were slow
	twice     int64 // the most bytes of a request that the service received twice

	at      map[string]*sessionAt // by object
	parts   map[string]partAt     // what the service has of the multipart upload, by number
	client  *child                // the last one that began
	asked   time.Time             // when it began, because it must ask what the service has, or when it asked for all parts later
	askedOf map[string]time.Time  // when it asked for one part, by number
	uploads int                   // multipart uploads
	starter *child                // which began the session or the upload
	way     string                // destination, the directory of the temporary objects, or the multipart upload
}

// destination is the way of a session that makes the object itself.
const destination = "destination"

// sessionAt is the state of a session: the committed offset in the last reply, what the service has, and the end of what it
// received, and when.
type sessionAt struct {
	acknowledged, kept, received int64
	ended                        time.Time
}

// partAt is a part of a multipart upload, and when the service had it.
type partAt struct {
	time time.Time
	size int64
}

// account follows requests in the order of their start. clients are the processes that made them, one after the other.
func account(t *testing.T, requests []fakegcs.Request, clients []*child) *ledger {
	t.Helper()
	l := &ledger{at: map[string]*sessionAt{}, parts: map[string]partAt{}, askedOf: map[string]time.Time{}}
	for _, r := range requests {
		for len(clients) > 0 && clients[0].began.Before(r.Time) {
			l.client, l.asked, clients = clients[0], clients[0].began, clients[1:]
		}
		require.NoError(t, l.request(r))
	}
	return l
}

func (l *ledger) request(r fakegcs.Request) error {
	at := l.at[r.Object]
	if at == nil {
		at = &sessionAt{}
		l.at[r.Object] = at
	}
	switch r.Op {
	case faults.OpStart:
		way := destination
		if strings.HasPrefix(r.Object, "gcsup-parts/") {
			way = path.Dir(r.Object)
		}
		l.begin(way, at)
	case faults.OpPut, faults.OpFinalize:
		if strings.HasPrefix(r.ContentRange, "bytes */") {
			break // the service has all bytes, but was killed before it made the object
		}
		var from int64
		if _, err := fmt.Sscanf(r.ContentRange, "bytes %d-", &from); err != nil {
			return fmt.Errorf("Content-Range %q: %w", r.ContentRange, err)
		}
		l.again += max(at.acknowledged-from, 0)
		if !r.Time.Before(at.ended) { // otherwise the bytes of a client that was killed arrive beside those of the next one
			l.twice = max(l.twice, at.received-from)
		}
		at.received, at.ended = from+r.Received, r.Time.Add(r.Elapsed)
		// The service keeps the multiples of 256 KiB of a request that is cut off.
		at.kept = max(at.kept, from+r.Received-r.Received%(256<<10))
	case faults.OpPartsStart:
		l.uploads++
		l.begin(fmt.Sprint("multipart upload ", l.uploads), at)
	case faults.OpPartsList:
		if _, before, ok := strings.Cut(r.Path, "part-number-marker="); ok {
			n, err := strconv.Atoi(before)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Path, err)
			}
			l.askedOf[strconv.Itoa(n+1)] = r.Time
		} else {
			l.asked = r.Time
		}
	case faults.OpPartsPut:
		_, number, _ := strings.Cut(r.Path, "partNumber=")
		// The last bytes of a client that was killed may arrive after the next one asked.
		if had, ok := l.parts[number]; ok && (had.time.Before(l.asked) || had.time.Before(l.askedOf[number])) {
			l.again += r.Received
		}
		if r.Status == 200 {
			l.parts[number] = partAt{r.Time.Add(r.Elapsed), r.Received}
		}
	}
	var last int64
	if _, err := fmt.Sscanf(r.Range, "bytes=0-%d", &last); err == nil {
		at.acknowledged = last + 1
	}
	return nil
}

// begin counts what the service has of the upload before, when another one begins, or another session for the same
// object. A client may leave a session at the destination that it started itself. It may be killed before it
// begins the next upload.
func (l *ledger) begin(way string, at *sessionAt) {
	l.sessions++
	left := at.kept
	if way != l.way {
		left = 0
		for _, a := range l.at {
			left += a.kept
			*a = sessionAt{}
		}
		for _, p := range l.parts {
			left += p.size
		}
		clear(l.parts)
	}
	slow := func(l line) bool { return l.Type == "divided" }
	if l.way == destination && l.starter != nil && slices.ContainsFunc(l.starter.lines(), slow) {
		l.discarded = max(l.discarded, left)
	} else {
		l.again += left
	}
	l.way, l.starter = way, l.client
	*at = sessionAt{}
}
