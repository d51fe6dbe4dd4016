package main

import (
	"context"
	"strings"
	"testing"

	"gcsup/internal/cli/exit"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestLazyStoreAfterClose checks that an abandoned upload can use the store after it
// is closed. An earlier version panicked.
func TestLazyStoreAfterClose(t *testing.T) {
	s := &lazyStore{open: func(context.Context) (openStore, error) { return state.OpenDir(t.TempDir()) }, missing: func() bool { return false }}
	s.close()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v", r)
		}
	}()
	if _, err := s.Load(t.Context(), "id"); err == nil {
		t.Error("no error")
	}
}

// TestEventAfterResult checks that no event follows the result line.
func TestEventAfterResult(t *testing.T) {
	var out strings.Builder
	r := newReporter(stdio{out: &out, err: &strings.Builder{}}, outputFlags{json: true}, commandLine{given: newCp(stdio{}).Flags()})
	one := task{source: "s", destination: "gs://b/o"}
	r.tracker.begin(one)
	r.outcomes(false).report(one, true, nil, exit.ErrSource)
	r.observe(upload.Event{Kind: upload.Progress})
	_ = r.flush()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if !strings.Contains(lines[len(lines)-1], `"type":"result"`) {
		t.Errorf("the last line is %s", lines[len(lines)-1])
	}
}
