package benchrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/fakegcs"
)

// checker is a server that receives uploads and keeps no bytes. It computes their
// CRC32C, compares it with that of the client, and does almost nothing else, so that
// the client has most of the machine.
type checker struct {
	latency  time.Duration // of each reply
	buffers  sync.Pool
	sessions sync.Map // of *received, by ID
	started  atomic.Int64
}

// received is what the server knows of an upload.
type received struct {
	name string
	size int64
	sum  hash.Hash32
	want string // the CRC32C of the client
}

func newChecker(latency time.Duration) *checker {
	return &checker{latency: latency, buffers: sync.Pool{New: func() any { return new([256 << 10]byte) }}}
}

func (c *checker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	u := &received{name: query.Get("name"), sum: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	complete := true
	var err error
	switch {
	case r.Method != http.MethodPost && r.Method != http.MethodPut:
		// A way that asks for the object, because its first bytes were slow, goes on without an answer
		// if the refusal is that of the service. It would ask a stranger for minutes.
		time.Sleep(c.latency)
		w.Header().Set("X-Guploader-Uploadid", "none")
		http.Error(w, "objects cannot be read", http.StatusForbidden)
		return
	case query.Has("upload_id"):
		u, complete, err = c.resume(query.Get("upload_id"), r)
		if err == nil && !complete {
			u.incomplete(w.Header())
		}
	case query.Get("uploadType") == "resumable":
		complete = false
		if err = u.readMetadata(r.Body); err == nil {
			w.Header().Set("Location", c.start(u, r))
		}
	case query.Get("uploadType") == "multipart":
		err = c.insert(u, r)
	default:
		err = c.receive(u, r.Body)
	}
	time.Sleep(c.latency)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case complete:
		u.reply(w)
	}
}

// start creates a session, and returns its URI.
func (c *checker) start(u *received, r *http.Request) string {
	id := fmt.Sprint(c.started.Add(1))
	c.sessions.Store(id, u)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s%s?uploadType=resumable&upload_id=%s", scheme, r.Host, r.URL.Path, id)
}

// resume receives the bytes of one request of a session. The requests of a session must
// be sent in order.
func (c *checker) resume(id string, r *http.Request) (u *received, complete bool, err error) {
	known, ok := c.sessions.Load(id)
	if !ok {
		return nil, false, errors.New("no such session")
	}
	u = known.(*received)
	if err := c.receive(u, r.Body); err != nil {
		return u, false, err
	}
	_, total, _ := strings.Cut(r.Header.Get("Content-Range"), "/")
	if total != strconv.FormatInt(u.size, 10) {
		return u, false, nil
	}
	if sum, ok := strings.CutPrefix(r.Header.Get("X-Goog-Hash"), "crc32c="); ok {
		u.want = sum
	}
	return u, true, u.check()
}

// insert receives an object in one request, with its metadata.
func (c *checker) insert(u *received, r *http.Request) error {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	metadata, err := parts.NextPart()
	if err != nil {
		return err
	}
	if err := u.readMetadata(metadata); err != nil {
		return err
	}
	data, err := parts.NextPart()
	if err != nil {
		return err
	}
	if err := c.receive(u, data); err != nil {
		return err
	}
	return u.check()
}

func (u *received) readMetadata(r io.Reader) error {
	object := struct{ Name, CRC32C string }{Name: u.name}
	err := json.NewDecoder(r).Decode(&object)
	u.name, u.want = object.Name, object.CRC32C
	return err
}

// receive reads bytes, and adds them to the checksum.
func (c *checker) receive(u *received, r io.Reader) error {
	buffer := c.buffers.Get().(*[256 << 10]byte)
	defer c.buffers.Put(buffer)
	n, err := io.CopyBuffer(u.sum, r, buffer[:])
	u.size += n
	return err
}

// incomplete sets the header of the reply to a request that is not the last one.
func (u *received) incomplete(header http.Header) {
	header.Set("X-HTTP-Status-Code-Override", "308")
	if u.size > 0 {
		header.Set("Range", fmt.Sprintf("bytes=0-%d", u.size-1))
	}
}

// crc32c returns the checksum in the form of the service.
func (u *received) crc32c() string { return fakegcs.CRC32C(u.sum.Sum32()).String() }

func (u *received) check() error {
	if sum := u.crc32c(); u.want != "" && u.want != sum {
		return fmt.Errorf("the CRC32C is %s, not %s", sum, u.want)
	}
	return nil
}

// reply writes an object with the usual fields, because a client has to decode them. A
// bucket with uniform bucket-level access, which Google recommends, sends no ACL.
func (u *received) reply(w io.Writer) {
	const date = "2026-01-02T03:04:05.678Z"
	_, _ = fmt.Fprintf(w, `{"kind":"storage#object","id":"bench/%[1]s/1767323045678901","selfLink":"https://www.googleapis.com/storage/v1/b/bench/o/%[1]s",`+
		`"mediaLink":"https://storage.googleapis.com/download/storage/v1/b/bench/o/%[1]s?generation=1767323045678901&alt=media","name":"%[1]s","bucket":"bench",`+
		`"generation":"1767323045678901","metageneration":"1","contentType":"application/octet-stream","storageClass":"STANDARD","size":"%[2]d","crc32c":%[3]q,`+
		`"etag":"CLX+x9r8/4sDEAE=","timeCreated":%[4]q,"updated":%[4]q,"timeStorageClassUpdated":%[4]q,"timeFinalized":%[4]q}`,
		u.name, u.size, u.crc32c(), date)
}
