package operations

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/require"
)

// TestOperations runs each operation on the emulator.
func TestOperations(t *testing.T) {
	for reads, json := range map[string]bool{"xml": false, "json": true} {
		t.Run(reads, func(t *testing.T) {
			srv := fakegcs.NewServer(t, nil)
			t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
			client, err := newClient(t.Context(), json)
			require.NoError(t, err)
			t.Cleanup(func() { client.Close() })
			for i, op := range operations {
				t.Run(op.name, func(t *testing.T) {
					if err := run(t.Context(), client, fmt.Sprintf("bucket-%d", i), op); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// TestPageCountsTheOperations checks the row of the comparison in docs/emulator/emulator.md.
func TestPageCountsTheOperations(t *testing.T) {
	page, err := os.ReadFile("../../../docs/emulator/emulator.md")
	require.NoError(t, err)
	_, row, ok := strings.Cut(string(page), "(../../internal/compat/operations/list.go)")
	cells := strings.Split(row, "|")
	if !ok || len(cells) < 3 {
		t.Fatal("docs/emulator/emulator.md has no row that links the list of operations")
	}
	if want := fmt.Sprintf("%d of %d", len(operations), len(operations)); strings.TrimSpace(cells[1]) != want {
		t.Errorf("docs/emulator/emulator.md counts %q, want %q", strings.TrimSpace(cells[1]), want)
	}
}
