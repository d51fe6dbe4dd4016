package tree_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// TestAside checks that a file that is being removed is not uploaded, and that one that a killed process was removing is
// reported with the name of its object, in order.
func TestAside(t *testing.T) {
	for _, sorted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "a", "b", "bc", sourcefile.Aside("b"), sourcefile.Aside("d"), "sub/"+sourcefile.Aside("e"), sourcefile.Aside("excluded"))
			src := newTree(t, []tree.Source{{Path: dir}}, upload.Spec{Bucket: "bkt"}, &tree.Options{Sorted: sorted, Exclude: []string{"excluded"}})
			var got []string
			for job := range src.Walk(t.Context()) {
				object := job.Spec.Object
				if job.Err != nil {
					if object += " failed"; !strings.Contains(job.Err.Error(), "rename it") {
						t.Error(job.Err)
					}
				}
				got = append(got, object)
			}
			if !sorted {
				slices.Sort(got)
			}
			if want := []string{"a", "b", "b failed", "bc", "d failed", "sub/e failed"}; !slices.Equal(got, want) {
				t.Errorf("sorted %v: %q, want %q", sorted, got, want)
			}
		})
	}
}

// TestAsideIsRemoved checks that the walk waits for a process that is removing a file.
func TestAsideIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, sourcefile.Aside("a"))
		time.Sleep(time.Until(changed(t, filepath.Join(dir, sourcefile.Aside("a")))))
		go func() {
			time.Sleep(time.Millisecond)
			_ = os.Remove(filepath.Join(dir, sourcefile.Aside("a")))
		}()
		src := newTree(t, []tree.Source{{Path: dir}}, upload.Spec{Bucket: "bkt"}, nil)
		for job := range src.Walk(t.Context()) {
			t.Errorf("job %+v", job)
		}
	})
}

// changed returns the time of the last change of a file.
func changed(t *testing.T, path string) time.Time {
	t.Helper()
	id, err := sourcefile.StatIdentity(path)
	require.NoError(t, err)
	return time.Unix(0, max(id.ChangeTimeNS, id.ModTimeNS))
}

// TestBelow checks that the jobs of a walk name its directory, unless links are followed.
func TestBelow(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "sub/a")
	t.Chdir(dir)
	for path, want := range map[string]string{dir: dir + string(os.PathSeparator), ".": ".", "sub": "sub" + string(os.PathSeparator), "sub/a": ""} {
		for _, follow := range []bool{false, true} {
			src := newTree(t, []tree.Source{{Path: path, Name: "name"}}, upload.Spec{Bucket: "bkt"}, &tree.Options{FollowSymlinks: follow})
			if follow {
				want = ""
			}
			for job := range src.Walk(t.Context()) {
				if job.Err != nil || job.Below != want {
					t.Errorf("%s, follow %v: below %q, %v, want %q", path, follow, job.Below, job.Err, want)
				}
			}
		}
	}
}
