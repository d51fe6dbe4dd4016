package deptest_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestReasons checks that a DESIGN.md names each module that a go.mod requires directly. The
// page has the reason for it.
func TestReasons(t *testing.T) {
	var mods []string
	var pages bytes.Buffer
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata"):
			return filepath.SkipDir
		case name == "go.mod":
			mods = append(mods, path)
		case name == "DESIGN.md":
			page, err := os.ReadFile(path)
			pages.Write(page)
			return err
		}
		return nil
	})
	require.NoError(t, err)
	direct := 0
	for _, mod := range mods {
		out, err := exec.Command("go", "mod", "edit", "-json", mod).Output()
		if err != nil {
			t.Fatalf("%s: %v", mod, err)
		}
		var file struct {
			Require []struct {
				Path     string
				Indirect bool
			}
		}
		require.NoError(t, json.Unmarshal(out, &file))
		for _, r := range file.Require {
			if r.Indirect || strings.HasPrefix(r.Path+"/", module) {
				continue
			}
			direct++
			if !bytes.Contains(pages.Bytes(), []byte("`"+r.Path+"`")) {
				t.Errorf("%s requires %s: write the reason in the DESIGN.md of a package that imports it", mod, r.Path)
			}
		}
	}
	if len(mods) < 2 || direct < 20 {
		t.Errorf("found %d modules with %d direct requirements", len(mods), direct)
	}
}
