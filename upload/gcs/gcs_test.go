package gcs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/objectmeta"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/gcs"
)

// TestMain runs the tests without the environment variables that this package reads.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		home, err := os.MkdirTemp("", "gcs-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(home)
		for _, name := range []string{
			"STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_QUOTA_PROJECT",
			"GOOGLE_CLOUD_UNIVERSE_DOMAIN", "GOOGLE_API_USE_CLIENT_CERTIFICATE", "GOOGLE_API_CERTIFICATE_CONFIG", "GOOGLE_API_USE_MTLS_ENDPOINT", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy",
		} {
			os.Unsetenv(name)
		}
		os.Setenv("HOME", home)
		os.Setenv("GCE_METADATA_HOST", "127.0.0.1:1") // no server listens there
		return m.Run()
	}())
}

func emulator(t *testing.T, opts *fakegcs.Options) (*fakegcs.Server, string) {
	t.Helper()
	srv := fakegcs.NewServer(t, opts)
	require.NoError(t, srv.CreateBucket(fakegcs.Bucket{Name: "bkt"}))
	return srv.Server, srv.URL
}

func newClient(t *testing.T, opts *gcs.Options) *gcs.Client {
	t.Helper()
	c, err := gcs.New(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func uploader(t *testing.T, c *gcs.Client, opts *upload.Options) *upload.Uploader {
	t.Helper()
	up, err := c.Uploader(opts)
	require.NoError(t, err)
	return up
}

func source(t *testing.T, size int) (string, []byte) {
	t.Helper()
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // cannot be compressed
	path := filepath.Join(t.TempDir(), "source")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path, content
}

// put uploads a file of size bytes as gs://bkt/o.
func put(t *testing.T, up *upload.Uploader, size int) (*upload.Result, error) {
	t.Helper()
	path, _ := source(t, size)
	return up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o"})
}

// wantPut fails unless put makes the object in srv.
func wantPut(t *testing.T, srv *fakegcs.Server, up *upload.Uploader, size int) *upload.Result {
	t.Helper()
	res, err := put(t, up, size)
	require.NoError(t, err)
	_, content := source(t, size)
	if got, err := srv.ReadObject("bkt", "o"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("object differs from the source, %v", err)
	}
	return res
}

func TestEndpoint(t *testing.T) {
	for _, tt := range []struct {
		name     string
		emulator string
		universe string
		opts     gcs.Options
		want     string // "" if refused
	}{
		{"default", "", "", gcs.Options{}, "https://storage.googleapis.com"},
		{"universe from the environment", "", "example.cloud", gcs.Options{}, "https://storage.example.cloud"},
		{"universe option", "", "example.cloud", gcs.Options{UniverseDomain: "other.cloud"}, "https://storage.other.cloud"},
		{"emulator without scheme", "localhost:9000", "", gcs.Options{}, "http://localhost:9000"},
		{"emulator with https", "https://localhost:9000", "", gcs.Options{}, "https://localhost:9000"},
		{"emulator's path is dropped", "http://h:1/some/prefix/", "", gcs.Options{}, "http://h:1"},
		{"endpoint wins over the emulator", "localhost:9000", "", gcs.Options{Endpoint: "https://other:99"}, "https://other:99"},
		{"endpoint without scheme", "", "", gcs.Options{Endpoint: "x:99"}, "https://x:99"},
		{"endpoint's path is dropped", "", "", gcs.Options{Endpoint: "https://x/storage/v1/"}, "https://x"},
		{"endpoint with a slash", "", "", gcs.Options{Endpoint: "https://x/"}, "https://x"},
		{"endpoint with a path", "", "", gcs.Options{Endpoint: "https://x/gcs"}, ""},
		{"endpoint with a longer path", "", "", gcs.Options{Endpoint: "https://x/gcs/storage/v1/"}, ""},
		{"endpoint with a query", "", "", gcs.Options{Endpoint: "https://x?a=b"}, ""},
		{"endpoint of another kind", "", "", gcs.Options{Endpoint: "ftp://x"}, ""},
		{"endpoint with a user", "", "", gcs.Options{Endpoint: "https://me:secret@x"}, ""},
		{"endpoint without a host", "", "", gcs.Options{Endpoint: "https://"}, ""},
		{"emulator without a host", "http://", "", gcs.Options{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("STORAGE_EMULATOR_HOST", tt.emulator)
			t.Setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", tt.universe)
			tt.opts.Anonymous = true
			c, err := gcs.New(t.Context(), &tt.opts)
			if tt.want == "" {
				if err == nil {
					t.Errorf("Endpoint = %q, want an error", c.Endpoint())
				}
				return
			}
			require.NoError(t, err)
			defer c.Close()
			if c.Endpoint() != tt.want {
				t.Errorf("Endpoint = %q, want %q", c.Endpoint(), tt.want)
			}
		})
	}
}

func TestNoCredentials(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.json")
	broken := filepath.Join(t.TempDir(), "broken.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"private_key": "SECRET`), 0o600))
	for _, file := range []string{missing, broken} {
		_, err := gcs.New(t.Context(), &gcs.Options{CredentialsFile: file})
		if !errors.Is(err, session.ErrCredentials) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: error = %v, want ErrCredentials without the content", filepath.Base(file), err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", missing)
	for _, opts := range []*gcs.Options{nil, {Endpoint: "https://gcs.example"}, {Endpoint: "http://127.0.0.1:80"}} {
		if _, err := gcs.New(t.Context(), opts); !errors.Is(err, session.ErrCredentials) {
			t.Errorf("%+v: error = %v, want ErrCredentials", opts, err)
		}
	}
}

// tokens is a token service. srv accepts every token that it issues.
type tokens struct {
	mu    sync.Mutex
	srv   *fakegcs.Server
	given int
	fail  func(n int) (status int, body string) // for the n-th request; status 0 issues a token
	n     int
}

func (s *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if s.fail != nil {
		if status, body := s.fail(s.n); status != 0 {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		}
	}
	s.given++
	token := fmt.Sprintf("ya29.token-%d", s.given)
	if s.srv != nil {
		s.srv.AllowToken(token)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600})
}

// credentialsFile writes the credentials file of a user whose tokens come from
// service.
func credentialsFile(t *testing.T, service *tokens) string {
	t.Helper()
	ts := httptest.NewServer(service)
	t.Cleanup(ts.Close)
	return userFile(t, ts.URL+"/token")
}

// userFile writes the credentials file of a user whose tokens come from a URL.
func userFile(t *testing.T, tokenURI string) string {
	t.Helper()
	return jsonFile(t, map[string]string{
		"type": "authorized_user", "client_id": "id", "client_secret": "secret", "refresh_token": "refresh",
		"token_uri": tokenURI, "quota_project_id": "quota-from-file",
	})
}

func jsonFile(t *testing.T, fields map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials.json")
	data, err := json.Marshal(fields)
	require.NoError(t, errors.Join(err, os.WriteFile(path, data, 0o600)))
	return path
}

// TestTokenRejectedInMidUpload checks that one new token is fetched, and that the
// upload continues at the committed offset.
func TestTokenRejectedInMidUpload(t *testing.T) {
	t.Parallel()
	srv, url := emulator(t, &fakegcs.Options{RequireToken: true, Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Do: faults.Action{Effect: faults.EffectRevoke}},
	}})
	service := &tokens{srv: srv}
	c := newClient(t, &gcs.Options{Endpoint: url, CredentialsFile: credentialsFile(t, service)})
	up := uploader(t, c, &upload.Options{ChunkSize: 1 << 20})
	res := wantPut(t, srv, up, 5<<20)
	if service.given != 2 || res.Waited != 0 || res.BytesSent > 6<<20 {
		t.Errorf("%d tokens issued, result %+v", service.given, res)
	}
}

// TestHeaders checks the headers of every request, and that no request goes to another host. A quota project is sent even without
// credentials.
func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newAttributeWorld(t)
	var c *gcs.Client
	for _, tt := range []struct {
		opts           gcs.Options
		token, project string
	}{
		{gcs.Options{Anonymous: true, QuotaProject: "billed"}, "", "billed"},
		{gcs.Options{CredentialsFile: credentialsFile(t, &tokens{srv: w.srv})}, "Bearer ya29.token-1", "quota-from-file"},
	} {
		tt.opts.Endpoint, tt.opts.Header, tt.opts.UserAgent = w.url, http.Header{"x-test": {"yes"}}, "mine/1"
		c = newClient(t, &tt.opts)
		call := withCall(withCall(uploader(t, c, nil), upload.CallOptions{Header: http.Header{"x-call": {"first"}}}), upload.CallOptions{Header: http.Header{"x-call": {"second"}}})
		path, _ := source(t, 9<<20)
		if _, err := call.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o" + tt.token, IfGenerationMatch: new(int64)}); err != nil {
			t.Fatal(err)
		}
		seen := w.requests()
		if len(seen) != 4 { // stat, start, put, finalize
			t.Errorf("%d requests, want 4", len(seen))
		}
		for i, r := range seen {
			if h := r.Header; h.Get("X-Test") != "yes" || h.Get("X-Call") != "second" || h.Get("Authorization") != tt.token || h.Get("X-Goog-User-Project") != tt.project || !strings.HasPrefix(h.Get("User-Agent"), "mine/1 gcsup/") {
				t.Errorf("request %d: %v", i, h)
			}
		}
	}

	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request went to another host") }))
	defer elsewhere.Close()
	if resp, err := c.HTTP().Get(elsewhere.URL); !errors.Is(err, session.ErrURIMismatch) {
		t.Errorf("request to another host: %v, %v", resp, err)
	}
}

// TestEndpointHasCredentials checks that STORAGE_EMULATOR_HOST does not disable the
// credentials of another endpoint, and that its server gets no request.
func TestEndpointHasCredentials(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request went to STORAGE_EMULATOR_HOST") }))
	defer other.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", other.URL)
	srv, url := emulator(t, &fakegcs.Options{RequireToken: true})
	service := &tokens{srv: srv}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", credentialsFile(t, service))
	c := newClient(t, &gcs.Options{Endpoint: url})
	if wantPut(t, srv, uploader(t, c, nil), 100); c.Anonymous() != "" {
		t.Errorf("Anonymous = %q", c.Anonymous())
	}
}

// TestWhyAnonymous checks when no credentials are looked for or sent, and that the error of a 401 has the reason. They are not sent over
// plain HTTP, except to this machine if a credentials file is named.
func TestWhyAnonymous(t *testing.T) {
	_, url := emulator(t, &fakegcs.Options{RequireToken: true})
	var dialer net.Dialer
	elsewhere := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, strings.TrimPrefix(url, "http://"))
	}}
	defer elsewhere.CloseIdleConnections()
	for _, tt := range []struct {
		name        string
		emulator    string
		credentials string
		opts        gcs.Options
		want        string
	}{
		{"emulator", strings.TrimPrefix(url, "http://"), "/does/not/exist", gcs.Options{}, "STORAGE_EMULATOR_HOST is set"},
		{"option", url, "/does/not/exist", gcs.Options{Anonymous: true}, "the client is anonymous"},
		{"this machine", "other:1", "", gcs.Options{Endpoint: url}, "the endpoint is plain HTTP, and GOOGLE_APPLICATION_CREDENTIALS names no file"},
		{"another machine", "other:1", "/does/not/exist", gcs.Options{Endpoint: "http://gcs.example", Transport: elsewhere}, "the endpoint is plain HTTP on another machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("STORAGE_EMULATOR_HOST", tt.emulator)
			t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", tt.credentials)
			c := newClient(t, &tt.opts)
			_, err := put(t, uploader(t, c, nil), 100)
			why, ok := errors.AsType[*session.AnonymousError](err)
			if !ok || why.Reason != tt.want || !errors.Is(err, session.ErrCredentials) || !strings.Contains(err.Error(), ": no credentials were sent, because "+tt.want) {
				t.Errorf("error = %v, want ErrCredentials because %s", err, tt.want)
			}
			if c.Anonymous() != tt.want {
				t.Errorf("Anonymous = %q, want %q", c.Anonymous(), tt.want)
			}
		})
	}
}

// TestNoGoogleAPIError checks that no error of an upload is one of the official library, as
// docs/library/from-storage-writer.md says.
func TestNoGoogleAPIError(t *testing.T) {
	for status, want := range map[int]error{
		400: session.ErrInvalid, 401: session.ErrCredentials, 403: session.ErrPermission, 404: session.ErrNotFound, 412: session.ErrPrecondition, 503: session.ErrRetriesExhausted,
	} {
		srv, url := emulator(t, nil)
		require.NoError(t, srv.AddFaults(faults.Fault{Match: faults.Match{Op: faults.OpStart}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: status, Reason: "why", Message: "text"}}))
		c := newClient(t, &gcs.Options{Endpoint: url, Anonymous: true})
		_, err := put(t, withCall(uploader(t, c, nil), upload.CallOptions{Retries: -1}), 9<<20)
		e, ok := errors.AsType[*session.Error](err)
		if !ok || !errors.Is(err, want) || e.Status != status || e.Reason != "why" || e.Message != "text" {
			t.Errorf("%d: error = %#v, want %v", status, err, want)
		}
		if official, is := errors.AsType[*googleapi.Error](err); is {
			t.Errorf("%d: the error wraps %v", status, official)
		}
	}
}

// TestOfficialLibrary checks that the official library reads the attributes and
// bytes that this package writes, and that Stat returns the attributes of objects
// that the library writes.
func TestOfficialLibrary(t *testing.T) {
	_, url := emulator(t, nil)
	t.Setenv("STORAGE_EMULATOR_HOST", url)
	official, err := storage.NewClient(t.Context())
	require.NoError(t, err)
	defer official.Close()
	c := newClient(t, nil)
	up := uploader(t, c, &upload.Options{ChunkSize: 256 << 10})
	plain, err := session.NewClient(nil, url)
	require.NoError(t, err)
	for _, size := range []int{0, 1, chunk.Granularity - 1, chunk.Granularity, chunk.Granularity + 1, 2 * chunk.Granularity, 20<<20 + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path, content := source(t, size)
			crc := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
			ours := upload.Spec{Bucket: "bkt", Object: fmt.Sprintf("dir/ours %d ü?#", size)}
			res, err := up.File(t.Context(), path, ours)
			require.NoError(t, err)
			o := official.Bucket("bkt").Object(ours.Object)
			attrs, err := o.Attrs(t.Context())
			require.NoError(t, err)
			if attrs.Size != int64(size) || attrs.CRC32C != crc || !reflect.DeepEqual(gcs.ObjectAttrs(res.Object), attrs) {
				t.Errorf("Attrs = %+v, the result has %+v", attrs, res.Object)
			}
			r, err := o.NewReader(t.Context())
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, content) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}

			theirs := upload.Spec{Bucket: "bkt", Object: fmt.Sprintf("theirs-%d", size)}
			w := official.Bucket("bkt").Object(theirs.Object).NewWriter(t.Context())
			w.ChunkSize, w.ContentType = 1<<20, "text/x-theirs"
			w.Metadata = map[string]string{"other": "x", objectmeta.FileModTime: "1763769254"}
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
			require.NoError(t, w.Close())
			stat := plain.Stat(t.Context(), theirs)
			if stat.Object == nil {
				t.Fatalf("Stat = %+v", stat)
			}
			attrs = w.Attrs()
			attrs.ACL, attrs.Owner = nil, "" // Stat does not read them, because that would need a permission
			if !reflect.DeepEqual(gcs.ObjectAttrs(stat.Object), attrs) || !stat.Object.HasCRC32C || !stat.Object.FileModTime.Equal(time.Unix(1763769254, 0)) {
				t.Errorf("Stat = %+v, want %+v", stat.Object, attrs)
			}
		})
	}
}

// TestCancelWhileTokenIsFetched checks that an upload can be canceled while a
// token service does not answer, and that concurrent uploads share one request.
func TestCancelWhileTokenIsFetched(t *testing.T) {
	srv, url := emulator(t, &fakegcs.Options{RequireToken: true})
	silent := make(chan struct{})
	var asked sync.WaitGroup
	asked.Add(1)
	service := &tokens{srv: srv, fail: func(n int) (int, string) {
		if n > 1 {
			t.Errorf("token request %d, want one", n)
			return 500, ""
		}
		asked.Done()
		<-silent
		return 400, ""
	}}
	c := newClient(t, &gcs.Options{Endpoint: url, CredentialsFile: credentialsFile(t, service)})
	defer close(silent)
	up := uploader(t, c, nil)
	path, _ := source(t, 100)
	ctx, cancel := context.WithCancel(t.Context())
	var uploads sync.WaitGroup
	for i := range 8 {
		uploads.Go(func() {
			if _, err := up.File(ctx, path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i)}); !errors.Is(err, context.Canceled) {
				t.Errorf("upload %d: %v", i, err)
			}
		})
	}
	asked.Wait()
	cancel()
	uploads.Wait()
}

// TestOneHost checks that different spellings of a host are equal.
func TestOneHost(t *testing.T) {
	t.Parallel()
	srv, url := emulator(t, nil)
	c := newClient(t, &gcs.Options{Endpoint: strings.Replace(url, "127.0.0.1", "LocalHost", 1), Anonymous: true})
	wantPut(t, srv, uploader(t, c, nil), 9<<20)
}

// TestConfiguration checks that contradictory options are refused, and that the
// errors contain no secrets.
func TestConfiguration(t *testing.T) {
	for _, opts := range []gcs.Options{
		{Endpoint: "https://me:SECRET@x"},
		{Endpoint: "http://gcs.example", CredentialsFile: "/does/not/exist"},
	} {
		_, err := gcs.New(t.Context(), &opts)
		if err == nil || strings.Contains(err.Error(), "SECRET") || errors.Is(err, session.ErrCredentials) {
			t.Errorf("%+v: error = %v, want one without the secret", opts, err)
		}
	}
}

// withCall returns up.With(o), whose options must be valid.
func withCall(up *upload.Uploader, o upload.CallOptions) *upload.Uploader {
	own, err := up.With(o)
	if err != nil {
		panic(err)
	}
	return own
}
