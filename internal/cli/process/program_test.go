package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gcsup/internal/cli/shell"
	"gcsup/internal/require"
)

// TestWords checks how messages name the program.
func TestWords(t *testing.T) {
	self := filepath.Join(t.TempDir(), "gcsup")
	other := filepath.Join(t.TempDir(), "gcsup")
	for _, path := range []string{self, other} {
		require.NoError(t, os.WriteFile(path, nil, 0o700))
	}
	found := func(path string) func(string) (string, error) {
		return func(string) (string, error) { return path, nil }
	}
	here, err := filepath.Abs("gcsup")
	require.NoError(t, err)
	none := func(string) (string, error) { return "", errors.New("not in PATH") }
	for _, c := range []struct {
		called, self string
		look         func(string) (string, error)
		want         string
	}{
		{"gcsup", self, found(self), "gcsup"},
		{"./gcsup", self, found(self), "gcsup"},
		{"./gcsup", self, found(other), shell.Quote(here)}, // another program is in PATH
		{"./gcsup", self, none, shell.Quote(here)},
		{"/my dir/gcsup", self, none, "'/my dir/gcsup'"},
		{"/tmp/go-build1/b001/exe/gcsup", "/tmp/go-build1/b001/exe/gcsup", none, "go run gcsup/cmd/gcsup"},
	} {
		if got := wordsOf(c.called, c.self, "gcsup/cmd/gcsup", c.look); got != c.want {
			t.Errorf("wordsOf(%q, %q) = %q, want %q", c.called, c.self, got, c.want)
		}
	}
}
