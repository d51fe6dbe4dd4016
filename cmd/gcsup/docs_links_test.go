package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestDocumentedLinks checks that the links between the pages lead to files and headings.
func TestDocumentedLinks(t *testing.T) {
	var pages []string
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err == nil && d.IsDir() && d.Name() == "topics": // parts of docs/reference/reference.md
			return filepath.SkipDir
		case err == nil && filepath.Ext(path) == ".md":
			pages = append(pages, path)
		}
		return err
	})
	require.NoError(t, err)
	anchors := map[string]map[string]bool{}
	for _, page := range pages {
		anchors[page] = anchorsOf(t, page)
	}
	link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	checked := 0
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(withoutCode(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
				continue
			}
			if known := anchors[target]; anchor != "" && !known[anchor] {
				t.Errorf("%s: no heading for %s", page, m[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("found only %d links", checked)
	}
}

// withoutCode returns the text of a page without fenced blocks and code.
func withoutCode(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	all := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(text), "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(all, "x")
}

// anchorsOf returns the names of the headings of a page, as GitHub makes them.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	all := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^#+ (.*)$").FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`[^\pL\pN _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}
