package examples

import (
	"context"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gcsup/docs/examples/after"
	"gcsup/docs/examples/before"
)

// TestPort checks that the service makes the same object with either Writer.
func TestPort(t *testing.T) {
	for name, export := range map[string]func(context.Context, iter.Seq2[string, int]) error{"before": before.Export, "after": after.Export} {
		t.Run(name, func(t *testing.T) {
			srv := emulator(t)
			t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
			if err := export(t.Context(), maps.All(map[string]int{"apples": 3})); err != nil {
				t.Fatal(err)
			}
			wantObject(t, srv, "reports", "today.csv", []byte("apples,3\n"))
			o, _ := srv.Object("reports", "today.csv")
			if o.ContentType != "text/csv" || o.Metadata["job"] != "nightly" {
				t.Errorf("the object has type %q and metadata %v", o.ContentType, o.Metadata)
			}
		})
	}
}

// TestPortChangesTwoLines compares the two functions line by line.
func TestPortChangesTwoLines(t *testing.T) {
	function := func(path string) []string {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, body, ok := strings.Cut(string(source), "func Export")
		if !ok {
			t.Fatalf("%s has no Export", path)
		}
		return strings.Split(body, "\n")
	}
	old, ported := function("before/export.go"), function("after/export.go")
	abort := slices.Index(ported, "\tdefer w.Abort()")
	if abort < 0 {
		t.Fatal("the port does not call Abort")
	}
	ported = slices.Delete(ported, abort, abort+1)
	if len(ported) != len(old) {
		t.Fatalf("the port has %d lines without Abort, want %d", len(ported), len(old))
	}
	changed := 0
	for i := range old {
		if old[i] != ported[i] {
			changed++
		}
	}
	if changed != 2 {
		t.Errorf("%d lines differ, want 2", changed)
	}
}
