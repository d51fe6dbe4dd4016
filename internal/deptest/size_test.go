package deptest_test

import (
	"debug/buildinfo"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCoreSize checks what upload, session, chunk and backoff add to a program with
// net/http: the bytes that are loaded from the binary, and the modules, gcsup included.
// The size of the file is that of these bytes in whole pages.
func TestCoreSize(t *testing.T) {
	if testing.Short() {
		t.Skip("links two programs")
	}
	const maxBytes, maxModules = 1_640_000, 4
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	build := func(source string) (size uint64, modules int) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "program")
		// The length of root must not count. The flag -trimpath of go build would compile
		// the standard library again.
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-gcflags=gcsup/...=-trimpath="+root+"=>gcsup",
			"-o", path, filepath.Join("testdata", source))
		cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", source, err, out)
		}
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for _, segment := range file.Progs {
			if segment.Type == elf.PT_LOAD {
				size += segment.Filesz
			}
		}
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return size, len(info.Deps)
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
