package tree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload/tree"
)

// The table of patterns is that of rclone.
func TestPatternTable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the names of the files are not allowed")
	}
	text, err := os.ReadFile(filepath.Join("testdata", "patterns.txt"))
	require.NoError(t, err)
	root := t.TempDir()
	var files []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, selected, _ := strings.Cut(line, "\t")
		want := strings.Fields(selected)
		if files == nil {
			files = want
			write(t, root, files...)
			continue
		}
		source := tree.Source{Path: root}
		equal(t, "--include "+pattern, sortedCopy(walk(t, &tree.Options{Include: []string{pattern}}, source)), sortedCopy(want))
		rest := append(walk(t, &tree.Options{Exclude: []string{pattern}}, source), want...)
		equal(t, "--exclude "+pattern+", with the files of --include", sortedCopy(rest), sortedCopy(files))
	}
}

// rclone accepts these patterns, too, but its Debian version does not nest braces.
func TestNestedBraces(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.jpg", "a.jpeg", "b.png", "c.gif")
	for pattern, want := range map[string][]string{
		"*.{jp{,e}g,png}":       {"a.jpeg", "a.jpg", "b.png"},
		"*.{gif,{{jpe?g}},png}": {"a.jpeg", "a.jpg", "b.png", "c.gif"},
	} {
		equal(t, pattern, walk(t, &tree.Options{Sorted: true, Include: []string{pattern}}, tree.Source{Path: root}), want)
	}
}

// A pattern that is wrong, or cannot match, is refused. The error describes why.
func TestPatternErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"":           `it is empty`,
		"a\xff":      `it is not valid UTF-8`,
		"./a":        `it never matches, because no path has an element "."`,
		"../a":       `it never matches, because no path has an element ".."`,
		"a/../b":     `it never matches, because no path has an element ".."`,
		"a//b":       `it never matches, because no path has an element ""`,
		"//":         `it never matches, because no path has an element ""`,
		"a//":        `it never matches, because no path has an element ""`,
		".":          `it never matches, because no path has an element "."`,
		"***":        `more than two * in a row`,
		"[a":         `[ without ], or an empty class; write \[ for the character`,
		"[]":         `[ without ], or an empty class; write \[ for the character`,
		"[^]":        `[ without ], or an empty class; write \[ for the character`,
		`[a\]`:       `[ without ], or an empty class; write \[ for the character`,
		"[!a]":       `[! is ambiguous: write [^ for a negation, and [\! for the character`,
		"[z-a]":      `invalid character class range: z-a`,
		"[[:what:]]": `invalid character class range: [:what:]`,
		"a]":         `] without its opening bracket; write \] for the character`,
		"a}":         `} without its opening bracket; write \} for the character`,
		"{a,b":       `{ without }; write \{ for the character`,
		"{{a":        `{{ without }}: it starts a regular expression`,
		"{{a,b},c}":  `{{ without }}: it starts a regular expression`,
		"{{(}}":      `missing closing ): (`,
		"{{)(}}":     `unexpected ): )(`,
		`a\`:         `\ at the end; write \\ for the character`,
		`a\/`:        `\ at the end; write \\ for the character`,
		`dir\file`:   `\f has no meaning; write / between directories, and \\ for the character \`,
		`\é`:         `\é has no meaning; write / between directories, and \\ for the character \`,
	} {
		_, err := tree.New(nil, template, &tree.Options{Exclude: []string{pattern}})
		if !errors.Is(err, tree.ErrUsage) || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("pattern %q: %v, want %s", pattern, err, want)
		}
	}
}

// The patterns that matched nothing are reported at the end of a complete walk.
func TestUnmatched(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.txt", "b.log", "tmp/c.txt", "sub/d.txt")
	t.Chdir(root)
	sources := []tree.Source{{Path: "."}}
	var got []string
	options := func(include, exclude []string) *tree.Options {
		got = nil
		return &tree.Options{Include: include, Exclude: exclude, Unmatched: func(include, exclude []string) {
			got = append(append(append(got, include...), "|"), exclude...)
		}}
	}
	words := strings.Fields
	for _, test := range []struct{ include, exclude, want string }{
		{include: "*.txt *.log", exclude: "tmp"},
		{include: "*.txt *.jpg", exclude: "/tmp/ *.xmp c.txt/", want: "*.jpg | *.xmp c.txt/"},
		{include: "sub *.txt a.txt", exclude: "* a.txt"}, // the first one that matches is not the only one
		{exclude: "tmp tmp/c.txt", want: "| tmp/c.txt"},  // in an excluded directory
		{include: "*.txt b.log", exclude: "b.log"},       // an excluded file matches an include
	} {
		for _, sorted := range []bool{false, true} {
			opts := options(words(test.include), words(test.exclude))
			opts.Sorted = sorted
			walk(t, opts, sources...)
			equal(t, "walk "+test.include+" | "+test.exclude, got, words(test.want))

			opts = options(words(test.include), words(test.exclude))
			opts.Sorted = sorted
			for range list(t, "a.txt\nb.log\ntmp/c.txt\nsub/d.txt\n", '\n', opts) {
			}
			equal(t, "list "+test.include+" | "+test.exclude, got, words(test.want))
		}
	}

	// Every shard compares all names.
	for i := range 4 {
		opts := options([]string{"a.txt"}, []string{"c.txt"})
		opts.Shard = tree.Shard{Index: i, Count: 4}
		walk(t, opts, sources...)
		equal(t, "shard", got, nil)
	}

	// Sizes reports nothing, and neither does a walk that is not complete.
	tr := newTree(t, sources, template, options(nil, []string{"*.jpg"}))
	for range tr.Sizes(t.Context()) {
	}
	for range tr.Walk(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	for range tr.Walk(ctx) {
		cancel()
	}
	cancel()
	for range list(t, "a.txt\n../b\n", '\n', options(nil, []string{"*.jpg"})) {
	}
	equal(t, "not complete", got, nil)
	write(t, root, ".well-known/acme-challenge/x")
	walk(t, options(nil, []string{"*.jpg"}), sources...)
	equal(t, "a directory that cannot be listed", got, nil)
}
