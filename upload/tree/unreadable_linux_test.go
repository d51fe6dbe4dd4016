package tree_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload/tree"
)

// Files and directories that cannot be read are reported.
func TestUnreadable(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "closed/x", "no-search/x", "secret", "z/y", "link -> secret", "closed-link -> closed/x")
	for path, mode := range map[string]os.FileMode{"closed": 0, "no-search": 0o444, "secret": 0} {
		require.NoError(t, os.Chmod(filepath.Join(root, path), mode))
	}
	defer os.Chmod(filepath.Join(root, "closed"), 0o755)
	defer os.Chmod(filepath.Join(root, "no-search"), 0o755)
	if os.Geteuid() == 0 {
		// Root can read everything. Use another user in this thread.
		for dir := root; dir != "/"; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			require.NoError(t, err)
			if info.Mode()&0o005 != 0o005 {
				old := info.Mode()
				require.NoError(t, os.Chmod(dir, old|0o055))
				defer os.Chmod(dir, old)
			}
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		require.NoError(t, syscall.Setfsuid(65534))
		defer syscall.Setfsuid(0)
	}
	// Such a link may be readable in the next run. It has no kind.
	want := []string{"a", "closed-link ErrSymlink", "closed/ ErrPermission", "link ErrPermission", "no-search/ ErrPermission", "secret ErrPermission", "z/y"}
	for _, sorted := range []bool{true, false} {
		equal(t, "walk", sortedCopy(walk(t, &tree.Options{Sorted: sorted}, tree.Source{Path: root})), want)
	}
	t.Chdir(root)
	jobs, err := tree.List(t.Context(), strings.NewReader("a\nsecret\nclosed/x\n"), '\n', template, nil)
	require.NoError(t, err)
	equal(t, "list", outcomes(t, jobs), []string{"a", "secret ErrPermission", "closed/x ErrPermission"})
	equal(t, "source", walk(t, nil, tree.Sources("closed", "secret")...), []string{"closed/ ErrPermission", "secret ErrPermission"})
}
