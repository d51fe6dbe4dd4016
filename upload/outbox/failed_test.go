package outbox

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// failing is an outbox with files that have no attempt left.
type failing struct {
	t   *testing.T
	dir string
}

func (b failing) write(name, content string) {
	b.t.Helper()
	written(b.t, filepath.Join(b.dir, name), content)
}

// giveUp makes a file and moves it to .failed.
func (b failing) giveUp(name, content string) {
	b.t.Helper()
	b.write(name, content)
	d := &disposer{disk: osDisk{}, dir: b.dir, sync: osDisk{}.sync}
	require.NoError(b.t, d.setAside(filepath.Join(b.dir, name), Failure{Name: name, Kind: "invalid"}))
}

// wantFailed fails unless Failed lists these files, by their names below .failed, with these names in the outbox.
func (b failing) wantFailed(want map[string]string) {
	b.t.Helper()
	list, err := Failed(b.dir)
	got := map[string]string{}
	for _, f := range list {
		got[f.File] = f.Name
	}
	if err != nil || !maps.Equal(got, want) {
		b.t.Errorf("failed: %q, %v, want %q", got, err, want)
	}
}

// wantRetried moves all files back and fails unless the outbox then has these files.
func (b failing) wantRetried(want map[string]string) {
	b.t.Helper()
	if _, err := Retry(b.dir); err != nil && !errors.Is(err, fs.ErrExist) {
		b.t.Error(err)
	}
	got := map[string]string{}
	entries, err := os.ReadDir(b.dir)
	require.NoError(b.t, err)
	for _, e := range entries {
		if e.Type().IsRegular() {
			content, err := os.ReadFile(filepath.Join(b.dir, e.Name()))
			require.NoError(b.t, err)
			got[e.Name()] = string(content)
		}
	}
	if !maps.Equal(got, want) {
		b.t.Errorf("the outbox has %q, want %q", got, want)
	}
}

// TestReasonsReplaceNoFile checks files whose names are those of the reasons of other files.
func TestReasonsReplaceNoFile(t *testing.T) {
	b := failing{t, t.TempDir()}
	b.giveUp("a.reason.json", "the name of a reason")
	b.giveUp("a", "a file")
	b.wantFailed(map[string]string{"a.reason.json": "a.reason.json", "a.1": "a"})
	b.giveUp("a.1.reason.json", "the name of another reason")
	b.wantFailed(map[string]string{"a.reason.json": "a.reason.json", "a.1": "a", "a.1.reason.json.1": "a.1.reason.json"})
	b.wantRetried(map[string]string{"a": "a file", "a.reason.json": "the name of a reason", "a.1.reason.json": "the name of another reason"})
	b.wantFailed(map[string]string{})
}

// TestReasonWithoutFile checks that a reason whose file a killed process did not move, or had moved back, is not
// taken for a file: it would be uploaded.
func TestReasonWithoutFile(t *testing.T) {
	b := failing{t, t.TempDir()}
	b.write(".failed/a.reason.json", `{"name":"a"}`)
	b.wantFailed(map[string]string{})
	b.giveUp("a", "a file")
	b.wantFailed(map[string]string{"a.1": "a"})
	b.wantRetried(map[string]string{"a": "a file"})
}

// TestFileWithoutReason checks that a file whose reason was removed does not take another file, which has the name
// of a reason, for its own: Retry would remove it.
func TestFileWithoutReason(t *testing.T) {
	b := failing{t, t.TempDir()}
	b.write(".failed/a", "a file")
	b.giveUp("a.reason.json", `{"name":"b"}`)
	b.wantFailed(map[string]string{"a": "a", "a.reason.json": "a.reason.json"})
	b.wantRetried(map[string]string{"a": "a file", "a.reason.json": `{"name":"b"}`})
	b.wantFailed(map[string]string{})
}

// TestFailedNames checks names that are too long for a suffix, or are not UTF-8.
func TestFailedNames(t *testing.T) {
	b := failing{t, t.TempDir()}
	long := strings.Repeat("ä", 127)
	for _, name := range []string{long + "1", long + "2", "a\xff"} {
		b.giveUp(name, name)
	}
	list, err := Failed(b.dir)
	if err != nil || len(list) != 3 || !slices.ContainsFunc(list, func(f Failure) bool { return f.Name == long+"2" && f.Kind == "invalid" }) {
		t.Errorf("%+v, %v", list, err)
	}
	b.wantRetried(map[string]string{long + "1": long + "1", long + "2": long + "2", "a\xff": "a\xff"})
}

// TestReasonIsRemoved checks that a file that cannot be moved to .failed leaves nothing there: it is tried again
// every minute.
func TestReasonIsRemoved(t *testing.T) {
	b := failing{t, t.TempDir()}
	d := &disposer{disk: osDisk{}, dir: b.dir, sync: osDisk{}.sync}
	if err := d.setAside(filepath.Join(b.dir, "missing"), Failure{Name: "missing"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(b.dir, failedDir)); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestFailedHidden checks that a reason cannot make Retry move a file to a name that the outbox ignores.
func TestFailedHidden(t *testing.T) {
	for _, name := range []string{"../out", ".outbox/x", "a/.b"} {
		b := failing{t, t.TempDir()}
		b.write(".failed/f", "x")
		b.write(".failed/f.reason.json", `{"name":"`+name+`"}`)
		b.wantFailed(map[string]string{"f": "f"})
	}
}

// TestFailedJunk checks that what the outbox would not upload is not listed or moved back, and that a pipe does not make
// Failed wait.
func TestFailedJunk(t *testing.T) {
	b := failing{t, t.TempDir()}
	b.giveUp("real", "a file")
	for _, name := range []string{".DS_Store", "sub/.nfs1", "lost+found/x", ".gcsup-new", "orphan.reason.json"} {
		b.write(".failed/"+name, "junk")
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(b.dir, ".failed", "link")); err != nil {
		t.Log(err)
	}
	b.write(".failed/other", "another file")
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, ".failed/other.reason.json"), 0o700)) // read like any reason that is not a file
	b.wantFailed(map[string]string{"real": "real", "other": "other"})
	b.wantRetried(map[string]string{"real": "a file", "other": "another file"})
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, ".failed")))
	b.write(".failed", "not a directory")
	if list, err := Failed(b.dir); err == nil {
		t.Errorf("a file instead of the directory: %+v", list)
	}
}

// written makes a file with its directory.
func written(t *testing.T, path, content string) fs.FileInfo {
	t.Helper()
	require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info
}
