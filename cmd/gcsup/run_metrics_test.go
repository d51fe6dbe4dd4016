package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
)

// TestListen scrapes the metrics of a run while its upload is held, and checks that a second run with the same port
// ends before it sends anything.
func TestListen(t *testing.T) {
	t.Parallel()
	fake := newFake(t, fakegcs.Options{})
	var requests atomic.Int64
	held, arrived := make(chan struct{}), make(chan struct{}, 100)
	release := sync.OnceFunc(func() { close(held) })
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Method == http.MethodPut {
			arrived <- struct{}{}
			<-held
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(release)
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	require.NoError(t, os.WriteFile(source, make([]byte, 9<<20), 0o600))
	env := []string{"STORAGE_EMULATOR_HOST=" + srv.URL, "HOME=" + dir}
	cp := []string{"cp", source, "gs://demo/held", "--state-dir=" + filepath.Join(dir, "state")}

	cmd := exec.Command("gcsup", append(cp[:len(cp):len(cp)], "--listen=127.0.0.1:0")...)
	cmd.Env = append(os.Environ(), env...)
	first := testprocess.Start(t, cmd)
	m := first.Await(`^gcsup: metrics are at (http://(127\.0\.0\.1:\d+)/)metrics\n`)
	url, address := m[1], m[2]
	text := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(text, "\ngcsup_active_uploads 1\n"); time.Sleep(5 * time.Millisecond) {
		if text = fetchPage(t, url+"metrics"); time.Now().After(end) {
			t.Fatalf("no upload is under way:\n%s", text)
		}
	}
	for _, series := range []string{"gcsup_active_size_bytes 9.437184e+06", `gcsup_files_total{outcome="done"} 0`, `gcsup_build_info{version="` + version().Version + `"} 1`} {
		if !strings.Contains(text, series+"\n") {
			t.Errorf("no series %s:\n%s", series, text)
		}
	}
	if health := fetchPage(t, url+"healthz"); health != "ok\n" {
		t.Errorf("health %q", health)
	}

	<-arrived // no other request follows
	before := requests.Load()
	out, code := runGcsup(t, env, "cp", source, "gs://demo/second", "--listen="+address, "--state-dir="+filepath.Join(dir, "second"))
	if code != 74 || !strings.Contains(out, "gcsup: --listen: listen tcp "+address+": ") || !strings.Contains(out, "; give another HOST:PORT, or port 0 for a free one\n") {
		t.Errorf("a port in use: exit code %d\n%s", code, out)
	}
	if n := requests.Load() - before; n != 0 {
		t.Errorf("%d requests were sent", n)
	}

	release()
	if code := first.Wait(); code != 0 || strings.TrimPrefix(first.Stderr(), m[0]) != "" {
		t.Errorf("the first run: %s", first.Output())
	}
}

// fetchPage returns the body of a page.
func fetchPage(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", url, resp.Status, err)
	}
	return string(body)
}
