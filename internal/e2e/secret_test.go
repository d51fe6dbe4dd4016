//go:build unix

package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// The secrets that are known before the test. The server adds each new
// upload_id.
const (
	bearer  = "ya29.BEARERSECRET" // access tokens start with it
	header  = "HEADERSECRET"
	refresh = "REFRESHSECRET"
	client  = "CLIENTSECRET"
)

// scene is a test scene: a user with credentials, the program, and a service.
type scene struct {
	t     *testing.T
	gcs   *fakegcs.Server
	ts    *httptest.Server
	state string
	path  string // the source
	env   []string

	// intercept handles a request instead of the service if it returns true.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	refused   atomic.Bool // the token service refuses

	mu      sync.Mutex
	uploads map[string]bool // upload_ids that were used
	seen    map[string]bool // secrets that reached the service
	argv    strings.Builder
	running *child

	elsewhere net.Listener // a host that must not get a request
	reached   atomic.Int64
}

func newScene(t *testing.T) *scene {
	dir := t.TempDir()
	s := &scene{t: t, state: filepath.Join(dir, "state"), path: filepath.Join(dir, "a.bin"), uploads: map[string]bool{}, seen: map[string]bool{}}
	source(t, s.path, 10<<20, 1)
	var err error
	s.gcs, err = fakegcs.New(&fakegcs.Options{CreateBuckets: true, RequireToken: true})
	require.NoError(t, err)
	s.ts = serve(t, s)
	t.Cleanup(func() { _ = s.gcs.Close() })

	given := 0
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.look()
		s.mu.Unlock()
		if s.refused.Load() {
			_ = r.ParseForm()
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error": "invalid_grant", "sent": %q}`, r.Form.Encode())
			return
		}
		s.mu.Lock()
		given++
		token := fmt.Sprintf("%s-%d", bearer, given)
		s.mu.Unlock()
		s.gcs.AllowToken(token)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token": %q, "token_type": "Bearer", "expires_in": 3600}`, token)
	}))
	t.Cleanup(tokens.Close)
	credentials := filepath.Join(dir, "credentials.json")
	data := fmt.Sprintf(`{"type": "authorized_user", "client_id": "id", "client_secret": %q, "refresh_token": %q, "token_uri": "%s/token"}`, client, refresh, tokens.URL)
	require.NoError(t, os.WriteFile(credentials, []byte(data), 0o600))
	s.env = environment("GOOGLE_APPLICATION_CREDENTIALS="+credentials, "GOTRACEBACK=all")

	s.elsewhere, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.elsewhere.Close() })
	go func() {
		for {
			c, err := s.elsewhere.Accept()
			if err != nil {
				return
			}
			s.reached.Add(1)
			_ = c.Close()
		}
	}()
	return s
}

// look records the arguments of the program, which other users can read while
// it runs. The caller holds mu.
func (s *scene) look() {
	if c := s.running; c != nil && runtime.GOOS == "linux" {
		// The program may have ended without waiting for this request.
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", c.PID()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			s.t.Error(err)
		}
		s.argv.Write(args)
	}
}

func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	for _, name := range []string{"upload_id", "uploadId"} {
		if id := r.URL.Query().Get(name); id != "" {
			s.uploads[id] = true
		}
	}
	if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer "+bearer) {
		s.seen[bearer] = true
	}
	s.seen[r.Header.Get("X-Secret")] = true
	s.look()
	s.mu.Unlock()
	if s.intercept == nil || !s.intercept(w, r) {
		s.gcs.ServeHTTP(w, r)
	}
}

// start starts gcsup with short waits. Only a number of failures stops it, not
// a time, so that a slow machine does not change the result.
func (s *scene) start(args ...string) *child {
	s.mu.Lock()
	defer s.mu.Unlock()
	send := []string{"-v", "--json", "--chunk-size=1MiB", "--max-wait=50ms"}
	if args[0] == "uploads" {
		send = nil
	}
	args = append(append(args, send...), "--additional-headers=X-Secret="+header, "--state-dir="+s.state, "--endpoint="+s.ts.URL)
	s.running = run(s.t, s.env, args...)
	return s.running
}

func (s *scene) cp(flags ...string) *child {
	return s.start(append([]string{"cp", s.path, "gs://bkt/obj"}, flags...)...)
}

// plan returns a fault plan that passes skip requests and then affects all.
func plan(op faults.Op, skip int, do faults.Action) []faults.Fault {
	return []faults.Fault{{Match: faults.Match{Op: op}, Skip: skip, Times: -1, Do: do}}
}

// interrupted creates a saved upload and returns the path of its file.
func (s *scene) interrupted() (token string) {
	s.t.Helper()
	require.NoError(s.t, s.gcs.AddFaults(plan(faults.OpPut, 5, faults.Action{Effect: faults.EffectStatus, Status: 503})...))
	c := s.cp()
	if c.Wait() != 75 || c.result().kind() != "retries_exhausted" {
		s.t.Fatal(c.output())
	}
	s.check(c)
	s.gcs.ClearFaults()
	return filepath.Join(s.state, "uploads", c.result().ID+".json")
}

// check searches the output, the files and the arguments of a process for
// secrets.
func (s *scene) check(c *child) {
	s.t.Helper()
	c.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	search := func(where, text string, secrets ...string) {
		for _, secret := range secrets {
			if strings.Contains(text, secret) || strings.Contains(text, url.QueryEscape(secret)) {
				s.t.Errorf("%s contains %s:\n%.2000s", where, secret, text)
			}
		}
	}
	fixed := []string{bearer, refresh, client}
	var uploads []string
	for id := range s.uploads {
		uploads = append(uploads, id)
	}
	all := append(append([]string{header}, fixed...), uploads...)
	search("standard output", c.Stdout(), all...)
	search("standard error", c.Stderr(), all...)
	// The user passed the header as an argument.
	search("the argument list", s.argv.String(), append(fixed, uploads...)...)
	if runtime.GOOS == "linux" && !strings.Contains(s.argv.String(), header) {
		s.t.Errorf("the argument list was not seen: %q", s.argv.String())
	}
	err := filepath.WalkDir(s.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Base(path)
		search(name, string(data), append(fixed, header)...)
		info, err := d.Info()
		if err != nil {
			return err
		}
		// A damaged saved upload still has the secret.
		if ext := filepath.Ext(path); ext != ".json" && ext != ".damaged" || info.Mode().Perm() != 0o600 {
			search(fmt.Sprintf("%s, mode %04o", name, info.Mode().Perm()), string(data), uploads...)
		}
		return nil
	})
	if err != nil {
		s.t.Error(err)
	}
	if n := s.reached.Load(); n > 0 {
		s.t.Errorf("%d connections to another host", n)
	}
}

// forget removes the upload_ids so far from the secrets.
func (s *scene) forget() {
	s.mu.Lock()
	s.uploads = map[string]bool{}
	s.mu.Unlock()
}

// spoil changes the bytes of a saved upload.
func (s *scene) spoil(token string, change func([]byte) []byte) {
	s.t.Helper()
	data, err := os.ReadFile(token)
	if err == nil {
		err = os.WriteFile(token, change(data), 0o600)
	}
	require.NoError(s.t, err)
}

// plant changes the host in the session URI of a saved upload, and recomputes the
// digest, as any process that can write the file could do.
func (s *scene) plant(token string) {
	s.spoil(token, func(data []byte) []byte {
		var e struct {
			V      int             `json:"v"`
			SHA256 string          `json:"sha256"`
			Upload json.RawMessage `json:"upload"`
		}
		require.NoError(s.t, json.Unmarshal(data, &e))
		old := `"session_uri":"` + s.ts.URL
		if !strings.Contains(string(e.Upload), old) {
			s.t.Fatalf("no %s in the saved upload", old)
		}
		e.Upload = json.RawMessage(strings.Replace(string(e.Upload), old, `"session_uri":"http://`+s.elsewhere.Addr().String(), 1))
		sum := sha256.Sum256(e.Upload)
		e.SHA256 = hex.EncodeToString(sum[:])
		out, err := json.Marshal(e)
		require.NoError(s.t, err)
		return out
	})
}

// id returns the ID of the upload in a file.
func id(token string) string { return strings.TrimSuffix(filepath.Base(token), ".json") }

// TestSecrets checks that no output or file of the program has an upload_id, an
// access token or the value of a header, for any failure.
func TestSecrets(t *testing.T) {
	t.Parallel()
	put503 := plan(faults.OpPut, 2, faults.Action{Effect: faults.EffectStatus, Status: 503})
	multipart := []string{"--parallel=2", "--parallel-by=multipart"}
	redirect := func(s *scene, flags ...string) *child {
		return s.answered(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+s.elsewhere.Addr().String()+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		}, flags...)
	}
	for i, tt := range []struct {
		name string
		do   func(s *scene) *child
		code int
		kind string // of the result; "" if there is none
	}{
		{"success", func(s *scene) *child { return s.cp() }, 0, "ok"},
		{"connection refused", func(s *scene) *child {
			return s.answered(func(http.ResponseWriter, *http.Request) {
				_ = s.ts.Listener.Close()
				panic(http.ErrAbortHandler)
			})
		}, 75, "retries_exhausted"},
		{"404", func(s *scene) *child {
			return s.against(plan(faults.OpPut, 2, faults.Action{Effect: faults.EffectNotFound}))
		}, 69, "session_lost"},
		{"503 always", func(s *scene) *child { return s.against(put503) }, 75, "retries_exhausted"},
		{"401", func(s *scene) *child {
			return s.against(plan("", 3, faults.Action{Effect: faults.EffectStatus, Status: 401}))
		}, 77, "credentials"},
		{"reset", func(s *scene) *child {
			return s.against(plan(faults.OpPut, 2, faults.Action{Effect: faults.EffectReset}))
		}, 75, "retries_exhausted"},
		{"499", func(s *scene) *child {
			return s.against(plan(faults.OpPut, 2, faults.Action{Effect: faults.EffectCanceled}))
		}, 69, "canceled"},
		{"a corrupt byte", func(s *scene) *child {
			return s.against(plan(faults.OpPut, 2, faults.Action{Effect: faults.EffectCorrupt, Bytes: 7}))
		}, 65, "checksum"},
		{"a service that echoes the request", func(s *scene) *child {
			return s.answered(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, "%s %s %s ", r.Header.Get("Authorization"), r.Header.Get("X-Secret"), r.URL)
			})
		}, 75, "retries_exhausted"},
		{"a service that echoes the URI as JSON", func(s *scene) *child {
			return s.answered(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				text, _ := json.Marshal(fmt.Sprintf("%q %s", r.Header, r.URL))
				fmt.Fprintf(w, `{"error": {"code": 403, "message": %s, "errors": [{"reason": "forbidden"}]}}`, text)
			})
		}, 77, "permission"},
		{"a session at another host", func(s *scene) *child {
			s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost {
					return false
				}
				s.mu.Lock()
				s.uploads["PLANTED"] = true
				s.mu.Unlock()
				w.Header().Set("Location", "http://"+s.elsewhere.Addr().String()+"/upload/storage/v1/b/bkt/o?uploadType=resumable&upload_id=PLANTED")
				return true
			}
			return s.cp()
		}, 65, "protocol"},
		{"a token service that refuses", func(s *scene) *child { s.refused.Store(true); return s.cp() }, 77, "credentials"},
		{"a redirect to another host", func(s *scene) *child { return redirect(s) }, 75, "retries_exhausted"},
		{"a multipart upload", func(s *scene) *child { return s.cp(multipart...) }, 0, "ok"},
		{"a multipart upload, reset", func(s *scene) *child {
			return s.against(plan(faults.OpPartsPut, 1, faults.Action{Effect: faults.EffectReset}), multipart...)
		}, 75, "retries_exhausted"},
		{"a multipart upload, a redirect to another host", func(s *scene) *child { return redirect(s, multipart...) }, 75, "retries_exhausted"},
		{"a multipart upload, a service that echoes the URL as XML", func(s *scene) *child {
			return s.answered(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				var text strings.Builder
				_ = xml.EscapeText(&text, fmt.Appendf(nil, "%q %s", r.Header, r.URL))
				fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%s</Message></Error>", &text)
			}, multipart...)
		}, 77, "permission"},
		{"SIGINT", func(s *scene) *child { return s.signalled(put503, syscall.SIGINT) }, 75, "interrupted"},
		{"a crash dump", func(s *scene) *child { return s.signalled(put503, syscall.SIGQUIT) }, 2, ""},
		{"a damaged Token", func(s *scene) *child {
			s.spoil(s.interrupted(), func(data []byte) []byte { data[len(data)/2] ^= 1; return data })
			return s.cp()
		}, 0, "ok"},
		{"a planted URI, cp", func(s *scene) *child { s.plant(s.interrupted()); return s.cp() }, 0, "ok"},
		{"a planted URI, cancel", func(s *scene) *child {
			token := s.interrupted()
			s.plant(token)
			return s.start("uploads", "cancel", id(token))
		}, 78, ""},
		{"a symlink in the saved upload's place", func(s *scene) *child {
			token := s.interrupted()
			require.NoError(s.t, errors.Join(os.Rename(token, filepath.Join(s.state, "moved")), os.Symlink(filepath.Join(s.state, "moved"), token)))
			s.forget() // the test itself has put it there
			return s.cp()
		}, 78, "insecure_permissions"},
		{"a saved upload that the group can read", func(s *scene) *child {
			token := s.interrupted()
			require.NoError(s.t, os.Chmod(token, 0o640))
			s.forget() // the test has changed the mode
			return s.cp()
		}, 78, "insecure_permissions"},
	} {
		if i%testsize.Full(1, 2) != 0 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			c := tt.do(s)
			if got := c.Wait(); got != tt.code {
				t.Errorf("exit code %d, want %d", got, tt.code)
			}
			if tt.kind != "" {
				if got := c.result().kind(); got != tt.kind {
					t.Errorf("result %q, want %q", got, tt.kind)
				}
			}
			s.check(c)
			s.mu.Lock() // a request whose client did not wait for it may still arrive
			if !s.refused.Load() && (!s.seen[bearer] || !s.seen[header]) {
				t.Errorf("the secrets were not used")
			}
			s.mu.Unlock()
			if t.Failed() {
				t.Log(c.output())
			}
		})
	}
}

// against starts an upload with a fault plan.
func (s *scene) against(faults []faults.Fault, flags ...string) *child {
	require.NoError(s.t, s.gcs.AddFaults(faults...))
	return s.cp(flags...)
}

// answered starts an upload whose data requests are answered by a handler instead of the service.
func (s *scene) answered(h http.HandlerFunc, flags ...string) *child {
	s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			h(w, r)
		}
		return r.Method == http.MethodPut
	}
	return s.cp(flags...)
}

// signalled sends a signal to an upload that waits for its next attempt.
func (s *scene) signalled(faults []faults.Fault, sig os.Signal) *child {
	c := s.against(faults, "--retry-for=1h")
	c.Await(`"waiting"`)
	c.Signal(sig)
	return c
}
