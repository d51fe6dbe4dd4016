package main

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gcsup/internal/require"
)

// TestModuleLists checks that the lists of modules in the Makefile and for Dependabot are complete.
func TestModuleLists(t *testing.T) {
	var want []string
	for _, name := range tracked(t) {
		if path.Base(name) == "go.mod" {
			want = append(want, path.Dir(name))
		}
	}
	makefile := regexp.MustCompile(`(?m)^MODULES = (.*)$`).FindStringSubmatch(read(t, filepath.Join("../..", "Makefile")))
	if makefile == nil {
		t.Fatal("the Makefile has no MODULES")
	}
	var dependabot struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join("../..", ".github", "dependabot.yml"))), &dependabot))
	var updated []string
	for _, u := range dependabot.Updates {
		for _, dir := range u.Directories {
			if u.Ecosystem == "gomod" {
				updated = append(updated, path.Join(".", strings.TrimPrefix(dir, "/")))
			}
		}
	}
	for file, got := range map[string][]string{"Makefile": strings.Fields(makefile[1]), ".github/dependabot.yml": updated} {
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s lists the modules %q, want %q", file, got, want)
		}
	}
}

// TestPinnedActions checks that workflows name actions by a commit, which cannot be moved as a tag can.
func TestPinnedActions(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`).FindAllStringSubmatch(read(t, file), -1) {
			if !regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`).MatchString(m[1]) {
				t.Errorf("%s: %s: want a commit, and a comment with its version", file, m[1])
			}
		}
	}
}
