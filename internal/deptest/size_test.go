package deptest_test

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCoreSize checks what upload, session, chunk and backoff add to a program with
// net/http: the bytes of the binary without debug information, and the modules,
// gcsup included.
func TestCoreSize(t *testing.T) {
	if testing.Short() {
		t.Skip("links two programs")
	}
	const maxBytes, maxModules = 1_500_000, 5
	build := func(source string) (size int64, modules int) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "program")
		// No other flags, such as -trimpath: the build cache has these packages.
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, filepath.Join("testdata", source))
		cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", source, err, out)
		}
		file, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return file.Size(), len(info.Deps)
	}
	plain, none := build("plain.go")
	size, modules := build("uploads.go")
	if none == modules {
		t.Fatalf("both programs have %d modules", modules)
	}
	t.Logf("upload adds %d bytes and %d modules", size-plain, modules)
	if size-plain > maxBytes || modules > maxModules {
		t.Errorf("upload adds %d bytes and %d modules, want at most %d and %d", size-plain, modules, maxBytes, maxModules)
	}
}
