package gcs_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/storage"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/objectmeta"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// attributeWorld is an emulator whose requests are recorded.
type attributeWorld struct {
	t    *testing.T
	srv  *fakegcs.Server
	url  string
	dir  string
	mu   sync.Mutex
	seen []*http.Request
}

func newAttributeWorld(t *testing.T) *attributeWorld {
	w := &attributeWorld{t: t, dir: t.TempDir()}
	w.srv, _ = emulator(t, nil)
	ts := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r.Clone(context.Background()))
		w.mu.Unlock()
		w.srv.ServeHTTP(rw, r)
	}))
	t.Cleanup(ts.Close)
	w.url = ts.URL
	return w
}

// requests returns the requests since the last call.
func (w *attributeWorld) requests() []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// count returns how many requests since the last call have the method.
func (w *attributeWorld) count(method string) (n int) {
	for _, r := range w.requests() {
		if r.Method == method {
			n++
		}
	}
	return n
}

// uploader returns the Uploader of a new process.
func (w *attributeWorld) uploader(opts upload.Options) *upload.Uploader {
	w.t.Helper()
	c := newClient(w.t, &gcs.Options{Endpoint: w.url, Anonymous: true})
	store, err := state.OpenDir(filepath.Join(w.dir, "state"))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { store.Close() })
	opts.Store, opts.ChunkSize = store, 2<<20
	return uploader(w.t, c, &opts)
}

// object returns an object as the official client sees it.
func (w *attributeWorld) object(t *testing.T, name string) (*storage.ObjectHandle, *storage.ObjectAttrs) {
	t.Helper()
	sc, err := newClient(t, &gcs.Options{Endpoint: w.url, Anonymous: true}).Storage(t.Context())
	require.NoError(t, err)
	o := sc.Bucket("bkt").Object(name)
	attrs, err := o.Attrs(t.Context())
	require.NoError(t, err)
	return o, attrs
}

// interrupt uploads the file until 4 MiB are committed and the service is down.
func (w *attributeWorld) interrupt(path string, spec upload.Spec) {
	w.t.Helper()
	w.outage()
	up := w.uploader(upload.Options{RetryFor: time.Millisecond})
	res, err := up.File(w.t.Context(), path, spec)
	if !errors.Is(err, session.ErrRetriesExhausted) || !res.Resumable {
		w.t.Fatalf("error = %v, result %+v, want ErrRetriesExhausted", err, res)
	}
}

// outage makes the service refuse the data after 4 MiB, once.
func (w *attributeWorld) outage() {
	w.t.Helper()
	require.NoError(w.t, w.srv.AddFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut, From: 4 << 20, To: 4<<20 + 1}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}))
}

// ways are the ways to make an object, each with its own source.
func (w *attributeWorld) ways() map[string]func(spec upload.Spec) (*upload.Result, []byte, error) {
	const large = 9<<20 + 5
	file := func(size int, do func(up *upload.Uploader, path string, spec upload.Spec) (*upload.Result, error)) func(spec upload.Spec) (*upload.Result, []byte, error) {
		return func(spec upload.Spec) (*upload.Result, []byte, error) {
			path, content := source(w.t, size)
			res, err := do(w.uploader(upload.Options{}), path, spec)
			return res, content, err
		}
	}
	single := func(up *upload.Uploader, path string, spec upload.Spec) (*upload.Result, error) {
		return up.File(w.t.Context(), path, spec)
	}
	batch := func(up *upload.Uploader, path string, spec upload.Spec) (res *upload.Result, err error) {
		for res, err = range up.Files(w.t.Context(), slices.Values([]upload.Job{{Path: path, Spec: spec}}), nil) {
		}
		return res, err
	}
	return map[string]func(spec upload.Spec) (*upload.Result, []byte, error){
		"single request": file(100, single),
		"session":        file(large, single),
		"batch":          file(100, batch),
		"large in batch": file(large, batch),
		"stream": file(large, func(up *upload.Uploader, path string, spec upload.Spec) (*upload.Result, error) {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return up.Reader(w.t.Context(), io.MultiReader(f), spec) // only a reader
		}),
		"resumed by File": file(large, func(_ *upload.Uploader, path string, spec upload.Spec) (*upload.Result, error) {
			w.interrupt(path, spec)
			res, err := w.uploader(upload.Options{}).File(w.t.Context(), path, upload.Spec{Bucket: spec.Bucket, Object: spec.Object, EncryptionKey: spec.EncryptionKey})
			if err == nil && !res.Resumed {
				err = errors.New("not resumed")
			}
			return res, err
		}),
		"resumed by Resume": file(large, func(_ *upload.Uploader, path string, spec upload.Spec) (*upload.Result, error) {
			w.interrupt(path, spec)
			up := w.uploader(upload.Options{EncryptionKeys: []session.EncryptionKey{spec.EncryptionKey}})
			id, err := up.ID(path, spec)
			require.NoError(w.t, err)
			res, err := up.Resume(w.t.Context(), id)
			if err == nil && !res.Resumed {
				err = errors.New("not resumed")
			}
			return res, err
		}),
	}
}

// settings are settings of an object. Together they set each field that an upload can set, except
// those of other tests.
var settings = map[string]struct {
	attrs       storage.ObjectAttrs
	gzip        bool
	userProject string
}{
	"all": {userProject: "payer", attrs: storage.ObjectAttrs{
		CacheControl: "public, max-age=60", ContentDisposition: `attachment; filename="a b.txt"`, ContentEncoding: "identity",
		ContentLanguage: "de", ContentType: "text/x-mine", Metadata: map[string]string{"k": "v w", "ü": "日本"},
		CustomTime: time.Date(2025, 6, 7, 8, 9, 10, 123456000, time.UTC), StorageClass: "NEARLINE", PredefinedACL: "projectPrivate",
		TemporaryHold: true, EventBasedHold: true,
		Retention:  &storage.ObjectRetention{Mode: session.RetentionUnlocked, RetainUntil: time.Now().Add(time.Hour).UTC().Truncate(time.Second)},
		KMSKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k",
	}},
	"access and contexts": {attrs: storage.ObjectAttrs{
		ACL:      []storage.ACLRule{{Entity: storage.AllUsers, Role: storage.RoleReader}, {Entity: "group-a@example.com", Role: storage.RoleOwner}},
		Contexts: &storage.ObjectContexts{Custom: map[string]storage.ObjectCustomContextPayload{"k": {Value: "v w"}, "ü": {Value: "日本"}}},
	}},
	"gzip": {gzip: true, attrs: storage.ObjectAttrs{ContentType: "text/x-mine", Metadata: map[string]string{"k": "v"}}},
}

// wantSettings fails unless the official client reads the settings.
func wantSettings(t *testing.T, want, read storage.ObjectAttrs) {
	t.Helper()
	if want.PredefinedACL = ""; want.ACL != nil {
		if len(read.ACL) != len(want.ACL)+1 { // and the owner
			t.Errorf("ACL = %v", read.ACL)
		}
		read.ACL = slices.DeleteFunc(read.ACL, func(r storage.ACLRule) bool { return string(r.Entity) == read.Owner })
		for i, r := range read.ACL {
			read.ACL[i] = storage.ACLRule{Entity: r.Entity, Role: r.Role}
		}
	}
	if want.Contexts != nil && read.Contexts != nil {
		for key, payload := range read.Contexts.Custom {
			read.Contexts.Custom[key] = storage.ObjectCustomContextPayload{Value: payload.Value}
		}
	}
	all, got := reflect.ValueOf(want), reflect.ValueOf(read)
	for i, field := range reflect.VisibleFields(all.Type()) {
		if !all.Field(i).IsZero() && !reflect.DeepEqual(all.Field(i).Interface(), got.Field(i).Interface()) {
			t.Errorf("%s = %v, want %v", field.Name, got.Field(i), all.Field(i))
		}
	}
}

// TestAttributes checks with the official client that every setting reaches the
// object, in each way to upload, and that the result has it.
func TestAttributes(t *testing.T) {
	t.Parallel()
	attrs := reflect.TypeFor[storage.ObjectAttrs]()
	for i := range attrs.NumField() {
		name, set := attrs.Field(i).Name, false
		for _, s := range settings {
			set = set || !reflect.ValueOf(s.attrs).Field(i).IsZero()
		}
		if set == slices.Contains(append(refused, "Bucket", "Name", "MD5", "CRC32C"), name) {
			t.Errorf("%s is set: %v", name, set)
		}
	}
	for of, set := range settings {
		if (testing.Short() || testsize.Raced(1, 0) == 1) && of != "all" {
			continue
		}
		w := newAttributeWorld(t)
		for way, do := range w.ways() {
			if set.gzip && (way == "batch" || way == "large in batch" || way == "resumed by File") && testsize.Full(0, 1) == 1 {
				continue
			}
			t.Run(of+"/"+way, func(t *testing.T) {
				w.requests()
				attrs := set.attrs
				attrs.Bucket, attrs.Name = "bkt", way
				spec, err := gcs.NewSpec(&attrs, nil)
				require.NoError(t, err)
				spec.Gzip, spec.UserProject = set.gzip, set.userProject
				res, content, err := do(spec)
				require.NoError(t, err)
				begun := 0
				for _, r := range w.requests() {
					q := r.URL.Query()
					if r.Method == "POST" && !q.Has("upload_id") {
						begun++
						if q.Get("predefinedAcl") != spec.PredefinedACL || q.Get("userProject") != spec.UserProject {
							t.Errorf("%s %v", r.Method, q)
						}
					}
				}
				if begun != 1 {
					t.Errorf("%d requests started an upload, want 1", begun)
				}
				o, a := w.object(t, way)
				if spec.Gzip {
					w.wantGzip(t, way, &attrs, o, a, content)
				} else if a.Size != int64(len(content)) {
					t.Errorf("%d bytes, want %d", a.Size, len(content))
				}
				if got := gcs.ObjectAttrs(res.Object); !reflect.DeepEqual(got, a) || got.Owner == "" {
					t.Errorf("the result has %+v, the service %+v", got, a)
				}
				wantSettings(t, attrs, *a)
			})
		}
	}
}

// wantGzip fails unless the object is content, compressed. It adds what a compressed object has to the settings.
func (w *attributeWorld) wantGzip(t *testing.T, way string, attrs *storage.ObjectAttrs, o *storage.ObjectHandle, a *storage.ObjectAttrs, content []byte) {
	t.Helper()
	size := fmt.Sprint(len(content))
	attrs.ContentEncoding, attrs.Metadata = "gzip", maps.Clone(attrs.Metadata)
	if way == "stream" {
		size = "" // not known when the session starts
	} else {
		attrs.Metadata[objectmeta.UncompressedSize] = size
	}
	for _, compressed := range []bool{false, true} {
		r, err := o.ReadCompressed(compressed).NewReader(t.Context())
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		r.Close()
		require.NoError(t, err)
		if compressed {
			if a.Size != int64(len(got)) || a.CRC32C != crc32.Checksum(got, crc32.MakeTable(crc32.Castagnoli)) {
				t.Errorf("%d compressed bytes, the object has %d", len(got), a.Size)
			}
			zr, err := gzip.NewReader(bytes.NewReader(got))
			require.NoError(t, err)
			if got, err = io.ReadAll(zr); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, content) {
			t.Errorf("compressed %v: %d bytes that are not the %d of the source", compressed, len(got), len(content))
		}
	}
	client, err := session.NewClient(nil, w.url)
	require.NoError(t, err)
	stat := client.Stat(t.Context(), upload.Spec{Bucket: "bkt", Object: way})
	if stat.Object == nil || stat.Object.Gzip != (size != "") || stat.Object.Gzip && stat.Object.UncompressedSize != int64(len(content)) {
		t.Errorf("Stat: %+v", stat.Object)
	}
}

// TestExpectedChecksums checks that an upload with the expected checksums succeeds.
// With others no object appears, no session stays open, and nothing is sent twice.
func TestExpectedChecksums(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB")
	}
	for i, tt := range []struct {
		name string
		set  func(s *upload.Spec, content []byte)
		want error
		last bool // the last request is sent
	}{
		{"right", func(s *upload.Spec, content []byte) {
			sum := md5.Sum(content)
			s.MD5, s.CRC32C = sum[:], new(crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
		}, nil, true},
		{"another CRC32C", func(s *upload.Spec, _ []byte) { s.CRC32C = new(uint32(0)) }, session.ErrChecksum, false},
		{"another MD5", func(s *upload.Spec, _ []byte) { s.MD5 = make([]byte, 16) }, session.ErrChecksum, true},
	} {
		for j, way := range []string{"single request", "session", "large in batch", "stream", "short stream", "resumed by File", "resumed by Resume"} {
			if i > 0 && (i+j)%testsize.Full(1, 2) != 0 {
				continue
			}
			t.Run(tt.name+", "+way, func(t *testing.T) {
				w := newAttributeWorld(t)
				// All sources of a size have the same content.
				size := 9<<20 + 5
				if way == "single request" || way == "short stream" {
					size = 100
				}
				_, content := source(t, size)
				spec := upload.Spec{Bucket: "bkt", Object: "o"}
				tt.set(&spec, content)
				var err error
				if way == "short stream" {
					up := w.uploader(upload.Options{})
					_, err = up.Reader(t.Context(), bytes.NewReader(content), spec)
				} else {
					_, _, err = w.ways()[way](spec)
				}
				if !errors.Is(err, tt.want) || tt.want != nil && !strings.Contains(err.Error(), "expected is") && way != "stream" {
					t.Fatalf("error = %v, want %v", err, tt.want)
				}
				_, exists := w.srv.Object("bkt", "o")
				if exists != (tt.want == nil) {
					t.Errorf("the object exists: %v", exists)
				}
				begun, last, canceled := 0, 0, 0
				for _, r := range w.requests() {
					switch {
					case r.Method == "POST":
						begun++
					case r.Method == "DELETE":
						canceled++
					case r.Header.Get("X-Goog-Hash") != "":
						last++
					}
				}
				if way == "single request" || way == "short stream" {
					if sent := begun > 0; sent != (tt.want == nil) {
						t.Errorf("%d requests were sent", begun)
					}
					return
				}
				if begun != 1 || (last == 1) != tt.last || last > 1 {
					t.Errorf("%d sessions, %d last requests", begun, last)
				}
				if !tt.last && canceled != 1 {
					t.Errorf("the session was canceled %d times, want once", canceled)
				}
				if files, _ := filepath.Glob(filepath.Join(w.dir, "state", "*.json")); len(files) > 0 {
					t.Errorf("saved uploads: %v", files)
				}
			})
		}
	}
}

// TestNotMatchAfterALostReply checks that an insert with a precondition that does not
// make it idempotent is not repeated before the destination was checked.
func TestNotMatchAfterALostReply(t *testing.T) {
	for _, effect := range []faults.Effect{faults.EffectLoseReply, faults.EffectReset} {
		w := newAttributeWorld(t)
		require.NoError(t, w.srv.AddFaults(faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: effect}}))
		path, _ := source(t, 100)
		up := w.uploader(upload.Options{})
		res, err := up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o", IfGenerationNotMatch: new(int64(5))})
		if err != nil || res.Object.Etag == "" {
			t.Errorf("%v: %+v, %v", effect, res, err)
		}
		var queries []string
		for _, r := range w.requests() {
			if q := r.URL.Query(); r.Method == "POST" {
				queries = append(queries, "not "+q.Get("ifGenerationNotMatch")+" is "+q.Get("ifGenerationMatch"))
			}
		}
		want := []string{"not 5 is "}
		if effect != faults.EffectLoseReply {
			want = append(want, "not  is 0")
		}
		if !slices.Equal(queries, want) {
			t.Errorf("%v: inserts %q, want %q", effect, queries, want)
		}
	}
}

// TestEncryptionKey checks with the official client that the object has the key in
// each way to upload, that every request that needs the key has it, and that no other
// text has it.
func TestEncryptionKey(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB")
	}
	w := newAttributeWorld(t)
	raw := []byte("0123456789abcdef0123456789ABCDEF")
	key, err := session.NewEncryptionKey(raw)
	require.NoError(t, err)
	for name, do := range w.ways() {
		t.Run(name, func(t *testing.T) {
			w.requests()
			res, content, err := do(upload.Spec{Bucket: "bkt", Object: name, EncryptionKey: key})
			require.NoError(t, err)
			if !res.Object.HasCRC32C {
				t.Error("the result has no CRC32C")
			}
			for _, r := range w.requests() {
				if r.Header.Get("X-Goog-Encryption-Key-Sha256") != key.SHA256() {
					t.Errorf("%s %s: no key", r.Method, r.URL.Path)
				}
			}
			o, a := w.object(t, name)
			if a.CustomerKeySHA256 != key.SHA256() || a.CRC32C != 0 {
				t.Fatalf("attributes without the key: %+v", a)
			}
			r, err := o.Key(raw).NewReader(t.Context())
			require.NoError(t, err)
			defer r.Close()
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if r, err := o.NewReader(t.Context()); err == nil {
				r.Close()
				t.Error("the object can be read without the key")
			}
		})
	}
}

// TestResumeNeedsTheKey checks that an encrypted upload is not resumed without its
// key or with another one, that it is kept, and that nothing is sent.
func TestResumeNeedsTheKey(t *testing.T) {
	t.Parallel()
	w := newAttributeWorld(t)
	key, _ := session.NewEncryptionKey(bytes.Repeat([]byte{1}, 32))
	other, _ := session.NewEncryptionKey(bytes.Repeat([]byte{2}, 32))
	path, content := source(t, 9<<20)
	spec := upload.Spec{Bucket: "bkt", Object: "o", EncryptionKey: key}
	w.interrupt(path, spec)
	w.requests()
	saved, err := os.ReadFile(w.savedFile())
	if err != nil || bytes.Contains(saved, []byte("AQEBAQEBAQEB")) || !bytes.Contains(saved, []byte(key.SHA256())) {
		t.Errorf("saved upload: %s, %v, want the SHA-256 only", saved, err)
	}
	for _, tt := range []struct {
		name string
		key  session.EncryptionKey
		ring []session.EncryptionKey
		want error
	}{
		{"no key", session.EncryptionKey{}, nil, session.ErrEncryptionKey},
		{"another key", other, nil, state.ErrOptionsDiffer},
		{"another key in the options", session.EncryptionKey{}, []session.EncryptionKey{other}, session.ErrEncryptionKey},
	} {
		up := w.uploader(upload.Options{EncryptionKeys: tt.ring})
		_, err := up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o", EncryptionKey: tt.key})
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), key.SHA256()) {
			t.Errorf("%s: File: %v, want %v with the SHA-256", tt.name, err, tt.want)
		}
		id, _ := up.ID(path, spec)
		if _, err := up.Resume(t.Context(), id); !errors.Is(err, session.ErrEncryptionKey) {
			t.Errorf("%s: Resume: %v, want ErrEncryptionKey", tt.name, err)
		}
	}
	if sent := w.requests(); len(sent) > 0 {
		t.Errorf("%d requests were sent", len(sent))
	}
	up := w.uploader(upload.Options{EncryptionKeys: []session.EncryptionKey{other, key}})
	res, err := up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o"})
	if err != nil || !res.Resumed || res.Object.Size != int64(len(content)) {
		t.Errorf("with the key in the options: %+v, %v", res, err)
	}
}

func (w *attributeWorld) savedFile() string {
	w.t.Helper()
	files, _ := filepath.Glob(filepath.Join(w.dir, "state", "*.json"))
	if len(files) != 1 {
		w.t.Fatalf("saved uploads: %v", files)
	}
	return files[0]
}

// TestStartOverKeepsTheEncryption checks that an upload that starts over because
// its source changed is still encrypted.
func TestStartOverKeepsTheEncryption(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	w := newAttributeWorld(t)
	key, _ := session.NewEncryptionKey(bytes.Repeat([]byte{1}, 32))
	path, content := source(t, 9<<20)
	w.interrupt(path, upload.Spec{Bucket: "bkt", Object: "o", EncryptionKey: key})
	content[5] ^= 1
	require.NoError(t, os.WriteFile(path, append(content, 'x'), 0o600))
	up := w.uploader(upload.Options{EncryptionKeys: []session.EncryptionKey{key}, RestartChanged: true})
	if res, err := up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o"}); err != nil || res.Resumed {
		t.Fatalf("%+v, %v", res, err)
	}
	if o, _ := w.srv.Object("bkt", "o"); o.CustomerEncryption == nil || o.CustomerEncryption.KeySHA256 != key.SHA256() {
		t.Errorf("encryption = %+v", o.CustomerEncryption)
	}
}

// TestChecksOfEncryptedObjects checks the comparison with objects of the same key,
// of another key and of no key: for --skip-identical, and after a reply that was lost.
func TestChecksOfEncryptedObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("sends many objects")
	}
	t.Parallel()
	key, _ := session.NewEncryptionKey(bytes.Repeat([]byte{1}, 32))
	other, _ := session.NewEncryptionKey(bytes.Repeat([]byte{2}, 32))
	for _, tt := range []struct {
		name      string
		was, is   session.EncryptionKey
		identical bool
	}{
		{"the same key", key, key, true},
		{"another key", other, key, false},
		{"no key before", session.EncryptionKey{}, key, false},
		{"no key now", key, session.EncryptionKey{}, false},
	} {
		for _, listing := range []*upload.Listing{nil, {Bucket: "bkt"}} {
			t.Run(fmt.Sprintf("%s, listed %v", tt.name, listing != nil), func(t *testing.T) {
				w := newAttributeWorld(t)
				path, _ := source(t, 100)
				up := w.uploader(upload.Options{})
				if _, err := up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o", EncryptionKey: tt.was}); err != nil {
					t.Fatal(err)
				}
				spec := upload.Spec{Bucket: "bkt", Object: "o", EncryptionKey: tt.is}
				for r, err := range up.Files(t.Context(), slices.Values([]upload.Job{{Path: path, Spec: spec}}), &upload.BatchOptions{Skip: upload.SkipIdentical, Listing: listing}) {
					if err != nil || (r.Skipped == upload.SkipIdentical) != tt.identical {
						t.Errorf("skipped = %v, %v, want identical = %v", r.Skipped, err, tt.identical)
					}
				}
			})
		}
	}
	t.Run("a lost reply", func(t *testing.T) {
		w := newAttributeWorld(t)
		require.NoError(t, w.srv.AddFaults(faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectLoseReply}}))
		path, _ := source(t, 100)
		up := w.uploader(upload.Options{})
		res, err := up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o", EncryptionKey: key})
		if err != nil || !res.Object.HasCRC32C {
			t.Errorf("%+v, %v, want the object that was made", res, err)
		}
		if n := w.count("POST"); n != 1 {
			t.Errorf("%d inserts, want 1", n)
		}
	})
}

// TestDetectContentType checks that a type of the caller's wins over a detected one, and that a stream is not read for it if its precondition
// does not hold. TestGzip of package upload has the detected types.
func TestDetectContentType(t *testing.T) {
	w := newAttributeWorld(t)
	up := w.uploader(upload.Options{DetectContentType: http.DetectContentType})
	for want, spec := range map[string]upload.Spec{"a/given": {ContentType: "a/given"}, "a/default": {DefaultContentType: "a/default"}, "text/plain; charset=utf-8": {}} {
		spec.Bucket, spec.Object = "bkt", "o"
		res, err := up.Reader(t.Context(), strings.NewReader("x"), spec)
		require.NoError(t, err)
		if o, _ := w.srv.Object("bkt", "o"); o.ContentType != want || res.Spec.ContentType != want {
			t.Errorf("content type %q, the result has %q, want %q", o.ContentType, res.Spec.ContentType, want)
		}
	}
	r := strings.NewReader("second")
	if _, err := up.Reader(t.Context(), r, upload.Spec{Bucket: "bkt", Object: "o", IfGenerationMatch: new(int64)}); !errors.Is(err, session.ErrPrecondition) || r.Len() != 6 {
		t.Errorf("error %v after %d bytes, want ErrPrecondition", err, 6-r.Len())
	}
}
