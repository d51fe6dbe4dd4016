package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
)

// TestListen scrapes the metrics of a run while its upload is held, and checks that a second run with the same port
// ends before it sends anything.
func TestListen(t *testing.T) {
	t.Parallel()
	fake := newFake(t, fakegcs.Options{})
	var requests atomic.Int64
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.Method == http.MethodPut {
			<-held
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(release)
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.WriteFile(source, make([]byte, 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"STORAGE_EMULATOR_HOST=" + srv.URL, "HOME=" + dir}
	cp := []string{"cp", source, "gs://demo/held", "--state-dir=" + filepath.Join(dir, "state")}

	first := exec.Command("gcsup", append(cp[:len(cp):len(cp)], "--listen=127.0.0.1:0")...)
	first.Env = append(os.Environ(), env...)
	messages, err := first.StderrPipe()
	if err == nil {
		err = first.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(messages)
	line, err := lines.ReadString('\n')
	m := regexp.MustCompile(`^gcsup: metrics are at (http://(127\.0\.0\.1:\d+)/)metrics\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("first message %q, %v", line, err)
	}
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

	before := requests.Load()
	out, code := runGcsup(t, env, "cp", source, "gs://demo/second", "--listen="+address, "--state-dir="+filepath.Join(dir, "second"))
	if code != 74 || !strings.Contains(out, "gcsup: --listen: listen tcp "+address+": ") || !strings.Contains(out, "; give another HOST:PORT, or port 0 for a free one\n") {
		t.Errorf("a port in use: exit code %d\n%s", code, out)
	}
	if n := requests.Load() - before; n != 0 {
		t.Errorf("%d requests were sent", n)
	}

	release()
	rest, _ := io.ReadAll(lines)
	if err := first.Wait(); err != nil || len(bytes.TrimSpace(rest)) != 0 {
		t.Errorf("the first run: %v\n%s", err, rest)
	}
}

// fetchPage returns the body of a page.
func fetchPage(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", url, resp.Status, err)
	}
	return string(body)
}
