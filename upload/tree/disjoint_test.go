package tree_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// TestDisjointCollision checks which sources Disjoint refuses, before any file is in them.
func TestDisjointCollision(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/sub", "b", "bb"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	for _, name := range []string{"f", "a/f"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	for _, tt := range []struct {
		sources []tree.Source
		refused bool
	}{
		{[]tree.Source{{Path: "a"}, {Path: "b"}}, true},
		{[]tree.Source{{Path: "a", Name: "a"}, {Path: "b", Name: "a/sub"}}, true},
		{[]tree.Source{{Path: "a"}, {Path: "f", Name: "f"}}, true},
		{[]tree.Source{{Path: "a", Name: "a"}, {Path: "a/sub", Name: "sub"}}, true},
		{[]tree.Source{{Path: "a/sub", Name: "sub"}, {Path: "a", Name: "a"}}, true},
		{[]tree.Source{{Path: "a", Name: "a"}, {Path: "a/f", Name: "g"}}, true},
		{[]tree.Source{{Path: "a", Name: "a"}, {Path: "a", Name: "b"}}, true},
		{[]tree.Source{{Path: "a", Name: "a"}, {Path: "b", Name: "b"}, {Path: "bb", Name: "bb"}, {Path: "f", Name: "f"}}, false},
		{[]tree.Source{{Path: "a"}}, false},
	} {
		sources := make([]tree.Source, len(tt.sources))
		for i, s := range tt.sources {
			sources[i] = tree.Source{Path: filepath.Join(dir, s.Path), Name: s.Name}
		}
		_, err := tree.New(sources, upload.Spec{Bucket: "bkt"}, &tree.Options{Disjoint: true})
		if errors.Is(err, tree.ErrCollision) != tt.refused || !tt.refused && err != nil {
			t.Errorf("%v: %v, want refused %v", tt.sources, err, tt.refused)
		}
	}
}
