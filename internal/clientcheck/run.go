package clientcheck

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"gcsup/fakegcs"
)

// Task is what a client must do: upload File as the object.
type Task struct {
	File           string
	Bucket, Object string
	// Dir is a directory for what the client keeps. Both runs of a script have the same.
	Dir      string
	Endpoint string // "http://HOST:PORT", or https with Options.TLS
	CA       string // with Options.TLS: the file of the authority that the client must trust
}

// Client runs a client until it has uploaded the object. An error is a failure that it reports. If
// ctx ends, the client must stop as if it were killed.
type Client func(ctx context.Context, task Task) error

// Defaults of [Options].
const (
	DefaultSize  = 24 << 20        // three chunks of most clients, and more than one of 16 MiB
	DefaultLimit = 6 * time.Minute // gcloud and rclone wait five minutes for a stalled connection
)

// Options configure a check. The zero value is useful.
type Options struct {
	// Size of the source of a script without a size of its own, a multiple of 256 KiB, and best of
	// three chunks of the client or more. 0 is DefaultSize.
	Size  int64
	Limit time.Duration // of a run; 0 is DefaultLimit
	Jobs  int           // scripts at the same time; 0 is 1
	TLS   bool
}

// grace is how long a client may take to stop.
const grace = 10 * time.Second

const bucket = "check-client"

// Run checks a client with one script. The error is one of the kit, not of the client.
func Run(ctx context.Context, client Client, s Script, o Options) (Verdict, []Exchange, error) {
	dir, err := os.MkdirTemp("", "check-client-")
	if err != nil {
		return Verdict{}, nil, fmt.Errorf("check %s: %w", s.Name, err)
	}
	defer os.RemoveAll(dir)
	v, list, err := run(ctx, client, s, o, dir)
	if err != nil {
		return v, list, fmt.Errorf("check %s: %w", s.Name, err)
	}
	return v, list, nil
}

func run(ctx context.Context, client Client, s Script, o Options, dir string) (Verdict, []Exchange, error) {
	size := cmp.Or(o.Size, DefaultSize)
	if s.Size != nil {
		size = s.Size(size)
	}
	b := &bench{
		script: s, size: size, limit: cmp.Or(o.Limit, DefaultLimit), rec: newRecorder(),
		other: content(s.Name+" other", Granularity),
	}
	b.task = Task{
		File:   filepath.Join(dir, "source", s.Name+".bin"),
		Bucket: bucket, Object: s.Name + ".bin", Dir: filepath.Join(dir, "state"),
	}
	for _, d := range []string{b.task.Dir, filepath.Dir(b.task.File)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return Verdict{}, nil, err
		}
	}
	if err := b.serve(o.TLS, dir); err != nil {
		return Verdict{}, nil, err
	}
	err := b.runs(ctx, client)
	var e Evidence
	if err == nil {
		e, err = b.evidence()
	}
	if err = errors.Join(err, b.close()); err != nil {
		return Verdict{}, nil, err
	}
	e.Exchanges = b.rec.exchanges() // now also those that were stalled
	return Judge(s, e), e.Exchanges, nil
}

// bench is the check of one script: the server and the source.
type bench struct {
	script Script
	task   Task
	size   int64
	limit  time.Duration
	source []byte
	other  []byte // of the object that exists or appears
	server *fakegcs.Server
	http   *http.Server
	rec    *recorder

	ends    []End
	message string
	elapsed time.Duration
}

// content returns n bytes, other ones for each name.
func content(name string, n int64) []byte {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // never fails
	var seed [32]byte
	h.Sum(seed[:0])
	p := make([]byte, n)
	_, _ = rand.NewChaCha8(seed).Read(p) // never fails
	return p
}

// serve starts the server.
func (b *bench) serve(secure bool, dir string) error {
	opts := fakegcs.Options{Buckets: []fakegcs.Bucket{{Name: bucket}}, KeepRequests: -1, OnRequest: b.rec.logged}
	if b.script.Faults != nil {
		opts.Faults = b.script.Faults(b.size)
	}
	var err error
	if b.server, err = fakegcs.New(&opts); err != nil {
		return err
	}
	b.rec.server = b.server
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, b.server.Close())
	}
	b.task.Endpoint = "http://" + ln.Addr().String()
	b.http = &http.Server{Handler: b.rec, ReadHeaderTimeout: time.Minute}
	b.http.ErrorLog = log.New(io.Discard, "", 0) // about clients that are killed
	serve := b.http.Serve
	if secure {
		cert, pem, err := fakegcs.NewCertificate("localhost", "127.0.0.1")
		if err == nil {
			b.task.CA = filepath.Join(dir, "ca.pem")
			err = os.WriteFile(b.task.CA, pem, 0o600)
		}
		if err != nil {
			return errors.Join(err, ln.Close(), b.server.Close())
		}
		b.task.Endpoint = "https://" + ln.Addr().String()
		b.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		serve = func(ln net.Listener) error { return b.http.ServeTLS(ln, "", "") }
	}
	go func() { _ = serve(ln) }() // until close
	return nil
}

func (b *bench) close() error { return errors.Join(b.server.Close(), b.http.Close()) }

// write writes the source of a run.
func (b *bench) write(run int) error {
	name := b.script.Name
	if run == 2 && b.script.Change {
		name += " changed"
	}
	b.source = content(name, b.size)
	if err := os.WriteFile(b.task.File, b.source, 0o600); err != nil {
		return err
	}
	// A change is a change, even if the time of the file system is coarse.
	at := time.Now().Add(time.Duration(run-2) * time.Minute)
	return os.Chtimes(b.task.File, at, at)
}

// place makes the object of another client.
func (b *bench) place() error {
	_, err := b.server.PutObject(fakegcs.Object{Bucket: bucket, Name: b.task.Object}, bytes.NewReader(b.other))
	return err
}

// runs runs the client.
func (b *bench) runs(ctx context.Context, client Client) error {
	if err := b.write(1); err != nil {
		return err
	}
	if b.script.Exists {
		if err := b.place(); err != nil {
			return err
		}
	}
	start := time.Now()
	defer func() { b.elapsed = time.Since(start) }()
	placed := make(chan error, 1)
	var at int64
	var meet func()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	first, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	var held chan struct{}
	switch {
	case b.script.Appears:
		at, meet = b.size/2, func() { placed <- b.place() }
	case b.script.Kill:
		held = make(chan struct{})
		at, meet = b.size/2, func() { kill(errKilled) }
	}
	if b.script.CutEnd {
		b.rec.cut = b.size - 1
	}
	b.rec.begin(at, meet, held)
	err := b.once(first, client)
	if held != nil {
		close(held)
	}
	b.rec.settled(500 * time.Millisecond)
	select {
	case failed := <-placed:
		err = errors.Join(err, failed)
	default:
	}
	if err != nil {
		return err
	}
	if b.ends[0] != Killed {
		return nil
	}
	if b.script.Change {
		if err := b.write(2); err != nil {
			return err
		}
	}
	b.rec.begin(0, nil, nil)
	if err := b.once(ctx, client); err != nil {
		return err
	}
	b.rec.settled(500 * time.Millisecond)
	return nil
}

var errKilled = errors.New("the check kills the client")

// once runs the client once, and notes how it ended. It fails only if ctx ends otherwise than by the
// kit.
func (b *bench) once(ctx context.Context, client Client) error {
	limited, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- client(limited, b.task) }()
	var err error
	select {
	case err = <-done:
	case <-limited.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case err = <-done:
		case <-late.C: // a function that does not stop is left behind
			err = errors.New("the client did not stop")
		}
	}
	cause := context.Cause(limited)
	switch {
	case cause == errKilled:
		b.ends = append(b.ends, Killed)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil && err != nil:
		b.ends, b.message = append(b.ends, NoEnd), err.Error()
	case err != nil:
		b.ends, b.message = append(b.ends, Failed), err.Error()
	default:
		b.ends, b.message = append(b.ends, Succeeded), ""
	}
	return nil
}

// evidence collects what the judge needs.
func (b *bench) evidence() (Evidence, error) {
	e := Evidence{Ends: b.ends, Message: b.message, Size: b.size, Elapsed: b.elapsed}
	e.Acted = b.rec.wasCut
	for _, f := range b.server.FaultReport() {
		e.Acted = e.Acted || f.Fired > 0
	}
	b.server.ClearFaults()
	objects, err := b.server.ListObjects(bucket, "")
	if err != nil {
		return e, err
	}
	e.Object, e.Others = Absent, len(objects)
	for _, o := range objects {
		if o.Name != b.task.Object {
			continue
		}
		e.Others--
		got, err := b.server.ReadObject(bucket, o.Name)
		switch {
		case err != nil:
			return e, err
		case bytes.Equal(got, b.source):
			e.Object = Right
		case (b.script.Exists || b.script.Appears) && bytes.Equal(got, b.other):
			e.Object = Kept
		default:
			e.Object = Wrong
		}
	}
	for _, id := range b.rec.ids() {
		if b.open(id) {
			e.Open++
		}
	}
	e.Open += b.openParts()
	return e, nil
}

// open reports whether a session still accepts bytes.
func (b *bench) open(id string) bool {
	const target = "http://localhost/upload/storage/v1/b/" + bucket + "/o?uploadType=resumable&upload_id="
	q, err := http.NewRequest(http.MethodPut, target+url.QueryEscape(id), http.NoBody)
	if err != nil {
		return false
	}
	q.Header.Set("Content-Range", "bytes */*")
	return b.ask(q).status == http.StatusPermanentRedirect
}

// openParts returns how many multipart uploads are neither complete nor aborted.
func (b *bench) openParts() int {
	q, err := http.NewRequest(http.MethodGet, "http://localhost/"+bucket+"?uploads", http.NoBody)
	if err != nil {
		return 0
	}
	return bytes.Count(b.ask(q).body.Bytes(), []byte("<UploadId>"))
}

// ask makes a request of the kit itself, which is not recorded.
func (b *bench) ask(q *http.Request) *answer {
	w := &answer{header: http.Header{}}
	b.server.ServeHTTP(w, q)
	return w
}

// answer is a reply in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *answer) Header() http.Header         { return w.header }
func (w *answer) WriteHeader(status int)      { w.status = status }
func (w *answer) Write(p []byte) (int, error) { return w.body.Write(p) }
