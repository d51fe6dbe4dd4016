//go:build linux

package fire_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
	"gcsup/internal/testsize"
)

// emulator is a process of gcsup emulator, with its data in a directory.
type emulator struct {
	t         *testing.T
	addr, dir string
	rate      string // of each connection
	process   *testprocess.Process
	logs      []string // of the processes that were killed
}

func startEmulator(t *testing.T, rate string) *emulator {
	t.Helper()
	e := &emulator{t: t, addr: loopback() + ":4443", dir: filepath.Join(testsize.MemDir(t), "gcs"), rate: rate}
	e.start()
	// Each generation of an object stays visible.
	body := `{"name":"data","versioning":{"enabled":true}}`
	resp, err := http.Post(e.url()+"/storage/v1/b?project=p", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	return e
}

func (e *emulator) url() string { return "http://" + e.addr }

func (e *emulator) start() {
	e.t.Helper()
	args := []string{"emulator", "--addr", e.addr, "--dir", e.dir, "--create-buckets", "--no-md5", "--log", "json"}
	if e.rate != "" {
		args = append(args, "--rate", e.rate)
	}
	e.process = start(e.t, nil, gcsup, args...)
	e.process.Await("STORAGE_EMULATOR_HOST")
}

// kill kills the emulator. Requests that were under way are not logged.
func (e *emulator) kill() {
	if !e.process.Alive() {
		return // an earlier kill has its log
	}
	e.process.Kill()
	e.logs = append(e.logs, e.process.Stderr())
}

// hurry removes the rate limit. No request may be under way.
func (e *emulator) hurry() {
	e.t.Helper()
	e.kill()
	e.rate = ""
	e.start()
}

// requests returns the requests that ended, in the order of their start.
func (e *emulator) requests() []fakegcs.Request {
	var all []fakegcs.Request
	for _, log := range append(slices.Clone(e.logs), e.process.Stderr()) {
		for text := range strings.Lines(log) {
			var r fakegcs.Request
			if json.Unmarshal([]byte(text), &r) == nil && r.Op != "" {
				all = append(all, r)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fakegcs.Request) int { return a.Time.Compare(b.Time) })
	return all
}

// version is a generation of an object.
type version struct {
	Name       string
	Generation string
	Size       int64 `json:",string"`
}

// versions returns all generations of all objects of a bucket.
func (e *emulator) versions(bucket string) ([]version, error) {
	var all []version
	for token := ""; ; {
		var page struct {
			Items         []version
			NextPageToken string
		}
		data, err := e.get("/storage/v1/b/" + bucket + "/o?versions=true&fields=nextPageToken,items(name,generation,size)&pageToken=" + url.QueryEscape(token))
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if token = page.NextPageToken; token == "" {
			return all, nil
		}
	}
}

// object reads an object.
func (e *emulator) object(bucket, name string) ([]byte, error) {
	return e.get("/storage/v1/b/" + bucket + "/o/" + url.PathEscape(name) + "?alt=media")
}

func (e *emulator) get(path string) ([]byte, error) {
	resp, err := http.Get(e.url() + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return data, err
}
