//go:build unix

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/fakegcs"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// TestSelection checks that each flag that chooses files makes another submission, and that paths are absolute.
func TestSelection(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{"csv": "*.csv\n", "more": "*.csv\n", "bin": "*.bin\n", "list": "a\n", "same": "a\n", "other": "b\n", "manifest": ""} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
	}
	nameOf := func(line string) string {
		t.Helper()
		f, flags := &submitFlags{}, pflag.NewFlagSet("submit", pflag.ContinueOnError)
		f.add(flags)
		require.NoError(t, flags.Parse(append(strings.Fields(line), "gs://my-bucket/")))
		_, done, err := f.submission(t.Context(), flags.Args())
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		defer done()
		if f.list != nil {
			f.selection.List, err = f.list.read()
			require.NoError(t, err)
		}
		name, err := f.selection.name()
		require.NoError(t, err)
		return name
	}
	lines := map[string]string{}
	for _, line := range []string{
		"-r .", "-r csv", "-r . csv", "-r . --include *.csv", "-r . --exclude *.csv", "-r . --include-from bin", "-r . --min-size 1M", "-r . --max-size 1M",
		"-r . --min-age 1d", "-r . --max-age 1d", "-r . --follow-symlinks", "-r . --ignore-symlinks", "-r . --manifest manifest",
		"--files-from list", "--files-from other", "--files-from list -C /tmp",
	} {
		name := nameOf(line)
		if before, found := lines[name]; found {
			t.Errorf("%q and %q are the same submission", before, line)
		}
		lines[name] = line
	}
	all := strings.Join(slices.Collect(maps.Values(lines)), "\n") + "--include-from --exclude-from --directory --null --strict"
	choosing := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(cmdline.TreeFlags).Add(choosing)
	choosing.VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(all, "--"+flag.Name) {
			t.Errorf("no submission with --%s", flag.Name)
		}
	})
	for _, same := range [][2]string{
		{"-r .", "-r " + dir}, {"-r . --include *.csv", "-r . --include-from csv"}, {"-r . --include-from csv", "-r . --include-from more"},
		{"--files-from list", "--files-from same"}, {"-r .", "-r . --strict"},
	} {
		if nameOf(same[0]) != nameOf(same[1]) {
			t.Errorf("%q and %q are different submissions", same[0], same[1])
		}
	}
}

// TestTwoLists submits two lists from standard input and loses the queue after the first. The second list does not
// replace the first.
func TestTwoLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	files := map[string][]byte{"a": w.write("a", 10), "b": w.write("b", 20)}
	submit := func(name string) {
		t.Helper()
		cmd := w.command("submit", "--files-from=-", "-C", w.tree, "gs://my-bucket/tree", "--state=gs://state-bucket/uploads")
		cmd.Stdin = strings.NewReader(name + "\n")
		require.NoError(t, cmd.Run())
	}
	work := func(want int) {
		t.Helper()
		w.wants(want, "", tryOnce...)
	}
	submit("a")
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "nats")))
	submit("b")
	work(exit.Temporary)
	submit("a")
	work(exit.OK)
	w.check(files)
}
