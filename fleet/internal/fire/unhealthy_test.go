//go:build linux

package fire_test

import (
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gcsup/internal/require"
)

// defect is what is wrong with a machine, so that its workers cannot do their work.
type defect string

const (
	unreadable   defect = "files that it cannot read"
	emptyMount   defect = "an empty mount"
	noPermission defect = "403 on the data bucket"
	otherSizes   defect = "files of another size"
	otherTimes   defect = "files with other times"
	partial      defect = "a part of the files"

	// The workers of these end when they start.
	otherKey       defect = "another state key"
	noState        defect = "403 on the state bucket"
	noNATSRequests defect = "no permission in NATS"
)

// lasting are the defects that a worker notices when it has a task. The values are the kinds of failures
// with which status reports that the worker is unhealthy.
var lasting = map[defect]string{
	unreadable: "no_input", emptyMount: "no_input", noPermission: "permission", otherSizes: "stale_copy", otherTimes: "stale_copy", partial: "no_input",
}

// fatal are the defects that end a worker at its start, with their exit codes.
var fatal = map[defect]int{otherKey: 78, noState: 77, noNATSRequests: 77}

// unhealthy is a machine with a defect.
type unhealthy struct {
	*slot
	defect defect
	gate   *refuser // nil unless it refuses requests
	cured  bool
}

// addUnhealthy makes a machine with a defect.
func (f *fire) addUnhealthy(d defect, args ...string) *unhealthy {
	f.t.Helper()
	u := &unhealthy{defect: d}
	gcs := f.emulator.addr
	switch d {
	case noPermission:
		u.gate = newRefuser(f.t.T, gcs, "data")
	case noState:
		u.gate = newRefuser(f.t.T, gcs, "state")
	}
	if u.gate != nil {
		gcs = u.gate.addr
	}
	u.slot = f.addWorker(gcs, 0, args...)
	u.wants = fatal[d]
	switch d {
	case otherKey:
		u.key = filepath.Join(f.dir, "other-key")
		f.writeKey(u.key)
	case noNATSRequests:
		u.stranger = true
	case unreadable, emptyMount, otherSizes, otherTimes, partial:
		u.view = filepath.Join(f.dir, fmt.Sprintf("machine-%d", u.number))
		require.NoError(f.t, f.copyTree(u))
	}
	return u
}

// copyTree makes the tree that a machine with a defect sees. Its files have no content: if one is
// uploaded, its object is wrong. A part of the files is right.
func (f *fire) copyTree(u *unhealthy) error {
	tree := filepath.Join(u.view, "tree")
	if err := os.MkdirAll(tree, 0o755); err != nil || u.defect == emptyMount {
		return err
	}
	mode := fs.FileMode(0o644)
	if u.defect == unreadable {
		mode = 0
		if os.Getuid() == 0 { // root can read every file
			const unprivileged = 65534 // the user nobody
			u.user = &syscall.Credential{Uid: unprivileged, Gid: unprivileged}
			u.key = filepath.Join(f.dir, "unprivileged-key")
			key, err := os.ReadFile(f.key())
			if err == nil {
				err = os.WriteFile(u.key, key, 0o600)
			}
			if err == nil {
				err = os.Chown(u.key, unprivileged, unprivileged)
			}
			if err != nil {
				return err
			}
		}
	}
	return filepath.WalkDir(f.tree(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(tree, strings.TrimPrefix(path, f.tree()))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size, modified, content := info.Size(), info.ModTime(), []byte(nil)
		switch u.defect {
		case otherSizes:
			size++
		case otherTimes:
			modified = modified.Add(-time.Hour)
		case partial:
			if f.random.IntN(2) == 0 {
				return nil
			}
			content = f.files[strings.TrimPrefix(path, f.tree()+"/")]
		}
		for _, step := range []func() error{
			func() error { return os.WriteFile(to, content, 0o600) },
			func() error { return os.Truncate(to, size) },
			func() error { return os.Chtimes(to, modified, modified) },
			func() error { return os.Chmod(to, mode) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
}

// cure removes the defect, while the worker runs.
func (f *fire) cure(u *unhealthy) {
	f.t.Helper()
	u.cured = true
	if u.gate != nil {
		u.gate.open.Store(true)
		return
	}
	tree := filepath.Join(u.view, "tree")
	if u.defect == partial {
		// The files that are there stay: the worker may be uploading one, and would start over with another file.
		if out, err := exec.Command("cp", "--archive", "--no-clobber", f.tree()+"/.", tree).CombinedOutput(); err != nil {
			f.t.Errorf("%v: %s", err, out)
		}
		return
	}
	err := os.Rename(tree, tree+".old")
	if err == nil {
		err = os.Symlink(f.tree(), tree)
	}
	if err != nil {
		f.t.Error(err)
	}
}

// refuser is a proxy for a machine whose account has no permission for a bucket.
type refuser struct {
	addr, bucket string
	open         atomic.Bool // it refuses nothing any more
	forward      *httputil.ReverseProxy
}

func newRefuser(t *testing.T, to, bucket string) *refuser {
	t.Helper()
	ln, err := net.Listen("tcp", loopback()+":0")
	require.NoError(t, err)
	r := &refuser{addr: ln.Addr().String(), bucket: bucket}
	next := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: to})}
	t.Cleanup(next.CloseIdleConnections)
	r.forward = &httputil.ReverseProxy{
		// The absolute URL stays: the emulator accepts a foreign host only as a proxy.
		Rewrite:       func(*httputil.ProxyRequest) {},
		Transport:     next,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	s := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close() })
	return r
}

func (r *refuser) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := strings.Split(req.URL.Path, "/")
	if i := slices.Index(path, "b"); r.open.Load() || i < 0 || i+1 == len(path) || path[i+1] != r.bucket {
		r.forward.ServeHTTP(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Guploader-Uploadid", "x")
	w.WriteHeader(http.StatusForbidden)
	_, _ = fmt.Fprint(w, `{"error":{"code":403,"message":"no permission","errors":[{"reason":"forbidden","message":"no permission"}]}}`)
}
