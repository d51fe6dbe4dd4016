package outbox

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"gcsup/internal/sourcefile"
)

// TestWalksHaveAnEnd checks that the scanner reports when it begins and ends to read a directory, around all files of it
// and of those below it: meanwhile an ordered outbox takes none.
func TestWalksHaveAnEnd(t *testing.T) {
	root := t.TempDir()
	const files = 300 // more than the scanner reports at once
	for i := range files {
		written(t, filepath.Join(root, "new", fmt.Sprint(i%7), fmt.Sprint(i)), "")
	}
	s := newScanner(root, func(string) {})
	s.full = false
	s.look("new")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go s.run(ctx)
	for walking, seen := 0, 0; walking > 0 || seen < files; {
		for _, found := range <-s.out {
			switch found.kind {
			case walkBegan:
				walking++
			case walkEnded:
				walking--
			case fileSeen:
				if seen++; walking == 0 {
					t.Fatalf("file %d is reported while no directory is being read", seen)
				}
			}
		}
	}
}

// TestKeepsAside checks that a scan takes no file that is being removed for the remains of a Put, whatever its name is.
func TestKeepsAside(t *testing.T) {
	for _, name := range []string{"a", "gcsup-a", "gcsup-put-a"} {
		if aside := sourcefile.Aside(name); temporary(aside) {
			t.Errorf("%s would be removed after a day", aside)
		}
	}
	if !temporary(tempPrefix + "put-1") {
		t.Error("the remains of a Put stay")
	}
}
